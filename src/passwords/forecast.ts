/** Says where the password of a transfer would come from, without reading or sending one. */
import type { Mailbox } from "../model/mailbox.ts";
import { passwordOfLink, type Recipient } from "../model/transfer.ts";
import { fits } from "./candidates.ts";
import { DropFolder, markOf } from "./dropped.ts";

interface Forecast {
  readonly mailbox: Mailbox;
  readonly trackingId: string;
  readonly sender: string;
  readonly recipient: Recipient | undefined;
  /** `NONE`: the sender chose no password. */
  readonly passwordMode: string | undefined;
}

/** For people; `undefined` if the transfer would wait for a password. `state`: the state folder. */
export async function forecastPassword(
  state: string,
  { mailbox, trackingId, sender, recipient, passwordMode }: Forecast,
): Promise<string | undefined> {
  const drops = new DropFolder(state).pathsFor(mailbox.name, trackingId);
  const marks = await Promise.all(drops.map(markOf));
  if (marks.some((mark) => mark !== undefined)) return "supplied";
  const link = recipient?.downloadUrl;
  if (link !== undefined && passwordOfLink(link) !== undefined) return "in the link";
  if (passwordMode?.toUpperCase() === "NONE") return "not needed";
  const at = mailbox.passwords.findIndex((rule) => fits(rule, { trackingId, sender }));
  const rule = mailbox.passwords[at];
  return rule && `rule ${at + 1}: ${rule.password.described}`;
}
