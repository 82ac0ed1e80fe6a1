/** What people are told of a transfer that waits for its password. */
import type { SpentAttempts } from "../model/attempts.ts";
import { commandFor } from "../model/order.ts";
import type { Permission } from "./guard.ts";

/** What became of a password that somebody supplied. */
export const NOTES = {
  ambiguous:
    "A password was dropped for this tracking-id, which several services list: supply it with --mailbox.",
  unusable: "What was dropped for it cannot be used: it has to be a plain file with one line of text.",
  known: "The password that was supplied had been refused before, and was not sent again.",
  unsent: "The password that was supplied was not sent.",
  kept: "The password that was supplied is kept until another attempt is allowed.",
} as const;

/** What stands in the way of a transfer that waits for a password, and what a person can do. */
export function explain(spent: SpentAttempts, trackingId: string, obstacle: Permission): string {
  const supply = commandFor("password", trackingId);
  if (spent.spent === 0) return `No password is known for it: supply it with ${supply}, or add a rule.`;
  const refused = describeSpent(spent);
  if (obstacle === "exhausted" || spent.spent >= spent.allowed) {
    const grant = commandFor("password", trackingId, { onceMore: true });
    return `${refused}, which is all that passwordAttempts allows: ask the sender, then allow one more attempt with ${grant}.`;
  }
  return `${refused}: ask the sender for the right one and supply it with ${supply}.`;
}

/** How many were refused, and how many answers are not known: the connection, the disk or the power failed. */
function describeSpent({ spent, unanswered, isShared }: SpentAttempts): string {
  const many = (count: number, one: string, more: string) =>
    count === 0 ? [] : [count === 1 ? one : `${count} ${more}`];
  const parts = [
    ...many(spent - unanswered, "one password was refused", "passwords were refused"),
    ...many(unanswered, "the answer to one attempt was lost", "attempts had an answer that was lost"),
  ];
  const text = parts.join(", and ");
  const where = isShared ? ", over all mailboxes that received it" : "";
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${where}`;
}
