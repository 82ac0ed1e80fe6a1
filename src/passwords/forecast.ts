/** Says where the password of a transfer would come from. Sends none, and asks no command for one. */
import type { SpentAttempts } from "../model/attempts.ts";
import { NO_PASSWORD } from "../model/attempts.ts";
import type { Mailbox } from "../model/mailbox.ts";
import { passwordOfLink, type Recipient } from "../model/transfer.ts";
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
}

/**
 * For people; `undefined` if no password would be sent, because none is known, or those that are known were refused.
 * `state`: the state folder. Throws `SECRET_UNREADABLE`.
 */
export async function forecastPassword(
  state: string,
  forecast: Forecast,
  spent: SpentAttempts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { trackingId, mailbox } = forecast;
  for await (const { described, ...candidate } of candidatesFor(state, forecast, signal)) {
    const { password, source } = candidate;
    if (password === undefined) return described;
    const may = await mayTry(spent, { password, source }, trackingId, mailbox.passwordAttempts);
    if (may === "yes") return described;
  }
  return undefined;
}

/** Best first. Without a password: a command would be asked. */
async function* candidatesFor(
  state: string,
  { mailbox, serviceId, trackingId, sender, recipient, passwordMode }: Forecast,
  signal: AbortSignal,
): AsyncGenerator<
  Pick<Candidate, "source"> & {
    readonly password: Candidate["password"] | undefined;
    readonly described: string;
  }
> {
  const kept = await (await KeptPasswords.peek(state)).read({ serviceId, trackingId });
  if (kept !== undefined) yield { source: "kept", password: kept, described: "accepted before" };
  for (const path of new DropFolder(state).pathsFor(mailbox.name, trackingId)) {
    const password = await readPassword(path);
    if (password !== undefined) yield { source: "drop", password, described: "supplied" };
  }
  const link = recipient?.downloadUrl;
  const carried = link && passwordOfLink(link);
  if (carried !== undefined) yield { source: "link", password: carried, described: "in the link" };
  else if (passwordMode?.toUpperCase() === "NONE")
    yield { source: "none", password: NO_PASSWORD, described: "not needed" };
  for (const [at, rule] of mailbox.passwords.entries()) {
    if (!fits(rule, { trackingId, sender })) continue;
    const password = "read" in rule.password ? await rule.password.read(signal) : undefined;
    yield { source: "rule", password, described: `rule ${at + 1}: ${rule.password.described}` };
  }
}
