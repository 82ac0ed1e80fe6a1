/** Whether a password rule fits a transfer. */
import { matchesGlob } from "../base/glob.ts";
import type { PasswordRule } from "../model/mailbox.ts";
import { canonicalAddress } from "../model/transfer.ts";

/** Every condition that the rule names must hold. */
export function fits(
  rule: PasswordRule,
  transfer: { readonly trackingId: string; readonly sender: string },
): boolean {
  const { sender, trackingId } = rule;
  return (
    (trackingId === undefined || trackingId === transfer.trackingId) &&
    (sender === undefined || matchesGlob(canonicalAddress(transfer.sender), canonicalAddress(sender)))
  );
}
