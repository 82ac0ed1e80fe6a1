/** What people are told of a transfer that waits for its password. */
import { commandFor } from "../model/order.ts";
import type { Permission, Spent } from "./guard.ts";

/** What became of a password that somebody supplied. */
export const NOTES = {
  unusable: "What was dropped for it cannot be used: it has to be a plain file with one line of text.",
  known: "The password that was supplied had been refused before, and was not sent again.",
  unsent: "The password that was supplied was not sent.",
} as const;

/** What stands in the way of a transfer that waits for a password, and what a person can do. */
export function explain(spent: Spent, obstacle: Permission, budget: number): string {
  const { refusedPasswords, trackingId } = spent;
  const supply = commandFor("password", trackingId);
  if (refusedPasswords === 0) return `No password is known for it: supply it with ${supply}, or add a rule.`;
  const refused = describeSpent(spent);
  if (obstacle === "exhausted" || refusedPasswords >= budget) {
    return `${refused}, which is all that passwordAttempts allows: ask the sender, then raise it for this mailbox.`;
  }
  return `${refused}: ask the sender for the right one and supply it with ${supply}.`;
}

/** What was refused, and what nobody knows the answer to: the connection, the disk or the power failed. */
function describeSpent({ refusedFingerprints, unansweredPasswords, isShared }: Spent): string {
  const many = (count: number, one: string, more: string) =>
    count === 0 ? [] : [count === 1 ? one : `${count} ${more}`];
  const parts = [
    ...many(refusedFingerprints.length, "one password was refused", "passwords were refused"),
    ...many(
      unansweredPasswords,
      "the answer to one attempt was lost",
      "attempts had an answer that was lost",
    ),
  ];
  const text = parts.join(", and ");
  const where = isShared ? ", over all mailboxes that received it" : "";
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${where}`;
}
