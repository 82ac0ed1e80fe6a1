/** The links for people of listed transfers, which carry the password of those that have none of their own. */
import type { Secret } from "../base/secret.ts";
import { findRecipient } from "../model/transfer.ts";
import type { MailboxState } from "./state.ts";

/** Where another process has polled, the list is read here too; every link in it is then known. */
export async function findLink(
  state: MailboxState,
  trackingId: string,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  const known = state.links.get(trackingId);
  if (known !== undefined) return known;
  const links: MailboxState["links"] = new Map();
  await state.tokens.use(async (address) => {
    const query = { active: true, fields: { trackingId: true, status: { recipients: true } } } as const;
    for await (const page of state.service.listReceived(address, query, () => {}, signal)) {
      for (const { trackingId: listed, recipients } of page) {
        const link = findRecipient(recipients, state.mailbox.email)?.downloadUrl;
        if (link !== undefined) links.set(listed, link);
      }
    }
  }, signal);
  state.links = links;
  return links.get(trackingId);
}
