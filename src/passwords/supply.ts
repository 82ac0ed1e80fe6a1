/** Whether a password that a person supplies would be tried: the same for the command and the page. */
import type { Secret } from "../base/secret.ts";
import { isFinal, type Receipt } from "../model/receipt.ts";
import { DropFolder } from "./dropped.ts";
import { mayTry, sumOf } from "./guard.ts";

export interface Objection {
  /** `known`: this very password was refused before. */
  readonly kind: "impossible" | "known";
  /** For people: the end of a sentence. */
  readonly detail: string;
}

/** `fellows`: receipts of other mailboxes of the same service that have passwords spent on it. */
export async function objectionToSupply(
  receipt: Receipt,
  fellows: readonly Receipt[],
  passwordAttempts: number,
  password: Secret,
): Promise<Objection | undefined> {
  const { state, mailbox, trackingId } = receipt;
  const impossible = (detail: string): Objection => ({ kind: "impossible", detail });
  if (isFinal(receipt) || state === "delivering") return impossible(`it is ${state}, and needs no password`);
  if (password.reveal() === "") return impossible("no password was given");
  if (new DropFolder("").pathOf(trackingId) === undefined) {
    return impossible("its tracking-id cannot be the name of a file: use a rule");
  }
  const spent = sumOf(receipt, fellows);
  const permission = await mayTry(spent, { password, origin: "drop" }, passwordAttempts);
  if (permission === "known") {
    return { kind: "known", detail: "this password was refused before, and is not sent again" };
  }
  if (permission === "yes") return undefined;
  const where = spent.isShared ? " over all mailboxes that received it" : "";
  return impossible(
    `${spent.refusedPasswords} attempts are spent${where}, which is all that passwordAttempts allows for ${mailbox}: raise it first`,
  );
}

/** Whether it has been refused by now. */
export async function isRefused(
  receipt: Receipt,
  fellows: readonly Receipt[],
  password: Secret,
): Promise<boolean> {
  return (await mayTry(sumOf(receipt, fellows), { password, origin: "drop" }, 0)) === "known";
}
