/** Whether a password that a person supplies would be tried: the same for the command and the page. */
import type { Secret } from "../base/secret.ts";
import type { SpentAttempts } from "../model/attempts.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import { DropFolder } from "./dropped.ts";
import { fingerprintOf, mayTry } from "./guard.ts";

export interface Objection {
  /** `known`: this very password was refused before. */
  readonly kind: "impossible" | "known";
  /** For people: the end of a sentence. */
  readonly detail: string;
}

export async function objectionToSupply(
  record: TransferRecord,
  spent: SpentAttempts,
  passwordAttempts: number,
  password: Secret,
): Promise<Objection | undefined> {
  const { state, mailbox, trackingId } = record;
  const impossible = (detail: string): Objection => ({ kind: "impossible", detail });
  if (hasEnded(record) || state === "delivering") return impossible(`it is ${state}, and needs no password`);
  if (password.reveal() === "") return impossible("no password was given");
  if (new DropFolder("").pathOf(trackingId) === undefined) {
    return impossible("its tracking-id cannot be the name of a file: use a rule");
  }
  const permission = await mayTry(spent, { password, origin: "drop" }, trackingId, passwordAttempts);
  if (permission === "known") {
    return { kind: "known", detail: "this password was refused before, and is not sent again" };
  }
  if (permission === "yes") return undefined;
  const where = spent.isShared ? " over all mailboxes that received it" : "";
  return impossible(
    `${spent.spent} attempts are spent${where}, which is all that passwordAttempts allows for ${mailbox}: allow one more with --once-more`,
  );
}

/** Whether it has been refused by now. */
export async function isRefused(
  { trackingId }: TransferRecord,
  { fingerprints }: SpentAttempts,
  password: Secret,
): Promise<boolean> {
  return fingerprints.includes(await fingerprintOf(password, trackingId));
}
