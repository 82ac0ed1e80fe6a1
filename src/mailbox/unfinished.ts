/** Transfers that earlier runs, or other processes, have begun and not finished. */
import { asFault, type Fault } from "../base/faults.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Ledger, OnDamaged } from "../ledger/port.ts";
import type { TransferRecord } from "../model/record.ts";
import type { Passwords } from "../passwords/port.ts";
import type { MailboxState } from "./state.ts";
import { expiryOf } from "./tools.ts";

/** Must not throw. */
export interface LeftOverWatch {
  recordDamaged: OnDamaged;
  /** Something in the staging folder that nobody needs cannot be removed, or a delivery cannot be finished. */
  leftOver(fault: Fault): void;
}

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
  mailboxes: ReadonlyMap<string, MailboxState>,
): void {
  for (const record of unfinished) {
    // Also where a poll found it settled: an operator may have begun another round since.
    mailboxes.get(record.mailbox)?.transfers.noteOpen(record.trackingId, expiryOf(record));
  }
}

/**
 * Finishes what a crash left: places decided deliveries, removes unused stages and late passwords. Returns the
 * deliveries that it placed.
 */
export async function recoverLeftOvers(
  inbox: Inbox,
  passwords: Passwords,
  ledger: Ledger,
  mailboxes: ReadonlyMap<string, MailboxState>,
  watch: LeftOverWatch,
): Promise<TransferRecord[]> {
  const placed = await ledger.recover((_path, error) => watch.leftOver(asFault(error)));
  await inbox.clearAsides((error) => watch.leftOver(asFault(error)));
  noteUnfinished(await Array.fromAsync(ledger.open(watch.recordDamaged)), mailboxes);
  await forgetLateDrops(passwords, ledger, mailboxes).catch((error: unknown) =>
    watch.leftOver(asFault(error)),
  );
  return placed;
}

/** Removes supplied passwords of transfers that are known here and open for no mailbox. */
export async function forgetLateDrops(
  passwords: Pick<Passwords, "forgetDropped">,
  ledger: Pick<Ledger, "open" | "find">,
  mailboxes: ReadonlyMap<string, unknown>,
): Promise<void> {
  let isAnyDamaged = false;
  let unfinished: TransferRecord[] | undefined;
  await passwords.forgetDropped(async ({ trackingId, mailbox: meant }) => {
    unfinished ??= await Array.fromAsync(ledger.open(() => (isAnyDamaged = true)));
    const isMeant = (name: string) => meant === undefined || meant === name;
    const isOpen = unfinished.some((it) => it.trackingId === trackingId && isMeant(it.mailbox));
    if (isAnyDamaged || isOpen) return false;
    for (const mailbox of [...mailboxes.keys()].filter(isMeant)) {
      const known = await ledger.find({ mailbox, trackingId }).catch(() => undefined);
      if (known !== undefined) return true;
    }
    return false;
  });
}
