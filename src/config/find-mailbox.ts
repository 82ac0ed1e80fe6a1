/** Which mailbox somebody means by a name or an address. */
import { nearestName } from "../base/nearest.ts";
import { canonicalAddress } from "../model/transfer.ts";
import { showValue } from "./problems.ts";

interface Named {
  readonly name?: string;
  readonly email?: string;
}

/** Its place among them, whatever the case of the letters; below zero where nobody is called that. */
export function findMailbox(mailboxes: readonly (Named | undefined)[], wanted: string): number {
  const key = canonicalAddress(wanted);
  return mailboxes.findIndex((mailbox) =>
    [mailbox?.name, mailbox?.email].some((name) => name && canonicalAddress(name) === key),
  );
}

export function describeUnknownMailbox(mailboxes: readonly (Named | undefined)[], wanted: string): string {
  const names = mailboxes.map((mailbox) => mailbox?.name ?? mailbox?.email ?? "");
  const nearest = nearestName(wanted, names);
  const known =
    nearest === undefined ? `known are ${names.join(", ") || "none"}` : `did you mean ${nearest}?`;
  return `there is no mailbox ${showValue(wanted)}, ${known}`;
}
