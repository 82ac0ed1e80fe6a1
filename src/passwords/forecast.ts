/** Says where the password of a transfer would come from. Sends none, and asks no command for one. */
import type { Secret } from "../base/secret.ts";
import { NO_PASSWORD, type SpentAttempts } from "../model/attempts.ts";
import type { Mailbox } from "../model/mailbox.ts";
import { passwordOfLink, type Recipient, takesAnyPassword } from "../model/transfer.ts";
import { type Candidate, fits } from "./candidates.ts";
import { DropFolder, readPassword } from "./dropped.ts";
import { mayTry } from "./guard.ts";
import { KeptPasswords } from "./kept.ts";

interface Forecast {
  readonly mailbox: Mailbox;
  readonly serviceId: string;
  readonly trackingId: string;
  readonly sender: string;
  readonly recipient: Recipient | undefined;
  /** `NONE`: the sender chose no password. */
  readonly passwordMode: string | undefined;
  readonly securityMode: string | undefined;
}

/**
 * For people; `undefined` if no password would be sent, because none is known, or those that are known were refused.
 * `state`: the state folder. Throws `SECRET_UNREADABLE`.
 */
export async function forecastPassword(
  state: string,
  { mailbox, serviceId, trackingId, sender, recipient, passwordMode, securityMode }: Forecast,
  spent: SpentAttempts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const maySend = async (source: Candidate["source"], password: Secret | undefined) =>
    password !== undefined &&
    (await mayTry(spent, { password, source }, trackingId, mailbox.passwordAttempts)) === "yes";
  const kept = await (await KeptPasswords.peek(state)).read({ serviceId, trackingId });
  if (await maySend("kept", kept)) return "accepted before";
  for (const path of new DropFolder(state).pathsFor(mailbox.name, trackingId)) {
    if (await maySend("drop", await readPassword(path))) return "supplied";
  }
  if (!takesAnyPassword(securityMode)) return undefined;
  const carried = recipient?.downloadUrl && passwordOfLink(recipient.downloadUrl);
  if (await maySend("link", carried)) return "in the link";
  const hasNone = carried === undefined && passwordMode?.toUpperCase() === "NONE";
  if (hasNone && (await maySend("none", NO_PASSWORD))) return "not needed";
  for (const [at, rule] of mailbox.passwords.entries()) {
    if (!fits(rule, { trackingId, sender })) continue;
    const isCommand = !("read" in rule.password);
    if (isCommand || (await maySend("rule", await rule.password.read(signal)))) {
      return `rule ${at + 1}: ${rule.password.described}`;
    }
  }
  return undefined;
}
