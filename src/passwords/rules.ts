/** Whether a password rule fits a transfer. */
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
    (sender === undefined || matchesAddress(canonicalAddress(transfer.sender), canonicalAddress(sender)))
  );
}

/** `*` stands for any run of characters, `?` for one; nothing else is special. */
function matchesAddress(address: string, glob: string): boolean {
  const pattern = glob
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${pattern}$`, "su").test(address);
}
