/** Transfers that earlier runs, or other processes, have begun and not finished. */

import { asFault } from "../base/faults.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Ledger, OnDamaged } from "../ledger/port.ts";
import type { Emit } from "../model/events.ts";
import { expiryOf, type TransferRecord } from "../model/record.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import type { Passwords } from "../passwords/port.ts";
import type { MailboxState } from "./state.ts";

/** Reports each damaged file once, for callers that read the ledger repeatedly. */
export function reportOnce(onDamaged: OnDamaged): OnDamaged {
  const reported = new Set<string>();
  return (path, reason) => {
    if (!reported.has(path)) onDamaged(path, reason);
    reported.add(path);
  };
}

/** Notes open transfers at their mailboxes. Transfers of mailboxes that are not configured are skipped. */
export function noteUnfinished(
  unfinished: readonly TransferRecord[],
  mailboxes: ReadonlyMap<MailboxId, MailboxState>,
): void {
  for (const record of unfinished) {
    // Also if a poll found it settled: an operator may have begun another round since.
    mailboxes.get(mailboxIdOf(record.mailbox))?.transfers.noteOpen(record.trackingId, expiryOf(record));
  }
}

/**
 * Recovers from a crash: places decided deliveries, and removes unused staged folders. Returns the deliveries that it
 * placed.
 */
export async function recoverFromCrash(
  inbox: Inbox,
  ledger: Ledger,
  mailboxes: ReadonlyMap<MailboxId, MailboxState>,
  emit: Emit,
): Promise<TransferRecord[]> {
  const failed = (error: unknown) => emit({ type: "recovery-failed", fault: asFault(error) });
  const onDamaged: OnDamaged = (path, reason) => emit({ type: "record-damaged", path, reason });
  const placed = await ledger.recover((_path, error, end) => {
    if (end === undefined) failed(error);
    else emit({ type: "transfer-stuck", record: end, fault: asFault(error) });
  });
  await inbox.clearAsides(failed);
  noteUnfinished(await Array.fromAsync(ledger.open(onDamaged)), mailboxes);
  return placed;
}

/**
 * Removes supplied passwords of transfers that are known here and open for no mailbox. `isOrdered`: an order that is not
 * carried out yet may open the transfer again.
 */
export async function forgetUnusedPasswords(
  passwords: Pick<Passwords, "forgetDropped">,
  ledger: Pick<Ledger, "open" | "find">,
  mailboxes: ReadonlyMap<MailboxId, unknown>,
  isOrdered: (trackingId: string) => Promise<boolean>,
): Promise<void> {
  let isAnyDamaged = false;
  let unfinished: TransferRecord[] | undefined;
  await passwords.forgetDropped(async ({ trackingId, mailbox }) => {
    unfinished ??= await Array.fromAsync(ledger.open(() => (isAnyDamaged = true)));
    const isFor = (name: string) => mailbox === undefined || mailboxIdOf(mailbox) === mailboxIdOf(name);
    const isOpen = unfinished.some((it) => it.trackingId === trackingId && isFor(it.mailbox));
    if (isAnyDamaged || isOpen || (await isOrdered(trackingId))) return false;
    for (const name of [...mailboxes.keys()].filter(isFor)) {
      // Then the password is kept.
      const known = await ledger.find({ mailbox: name, trackingId }).catch(() => undefined);
      if (known !== undefined) return true;
    }
    return false;
  });
}
