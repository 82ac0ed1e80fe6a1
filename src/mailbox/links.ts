/** The links for people of listed transfers, which carry the password of those that have none of their own. */
import type { Secret } from "../base/secret.ts";
import { findRecipient, passwordOfLink } from "../model/transfer.ts";
import { type MailboxState, MOST_OPEN } from "./state.ts";

/** Keeps a link that carries a password; there are no more of them than open transfers. */
export function keepLink(links: MailboxState["links"], trackingId: string, link: Secret | undefined): void {
  if (link === undefined || links.size >= MOST_OPEN || passwordOfLink(link) === undefined) return;
  links.set(trackingId, link);
}

/** Where another process has polled, the list is read here too; the links of all open transfers are then known. */
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
        if (listed !== trackingId && !state.undelivered.has(listed)) continue;
        keepLink(links, listed, findRecipient(recipients, state.mailbox.email)?.downloadUrl);
      }
    }
  }, signal);
  state.links = links;
  return links.get(trackingId);
}
