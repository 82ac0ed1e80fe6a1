/** Regular clean-up: finishes deliveries of processes that died, and removes expired records and passwords. */

import { Coalesced } from "../base/concurrency.ts";
import { asFault } from "../base/faults.ts";
import { clearInterval, setInterval } from "../base/timers.ts";
import { demandProtected } from "../inbox/exposure.ts";
import { listOrders } from "../ledger/orders.ts";
import type { Ledger } from "../ledger/port.ts";
import { BROWSER, type TransferRecord } from "../model/record.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import type { Passwords } from "../passwords/port.ts";
import type { Parts } from "./parts.ts";

/** Each sweep checks one of 256 parts of the ledger: all of them in a day. */
const SWEEP_EVERY_MS = 5 * 60_000;

/** Runs until the scope ends. */
export function startHousekeeping(tools: Parts, scope: AsyncDisposableStack): void {
  const runs = new Coalesced(async () => {
    await tools.demandFolders();
    const exposed = await demandProtected(tools.live.now).catch(asFault);
    tools.emit({ type: "trust-looked-at", fault: exposed });
    // The sweep runs even if the recovery fails.
    await recover(tools)
      .then((placed) => announce(placed, tools))
      .catch((error: unknown) => tools.emit({ type: "recovery-failed", fault: asFault(error) }));
    await sweep(tools);
  });
  // It fails only if a folder is lost, which the folders' watch reports.
  const timer = setInterval(() => void (runs.isIdle && runs.run().catch(() => {})), SWEEP_EVERY_MS);
  scope.adopt(timer, async () => {
    clearInterval(timer);
    await runs.idle();
  });
}

/**
 * Finishes rounds that a crash has interrupted, in this process or another one, and returns them. `onFailed` is called for
 * each round that it cannot finish.
 */
export function recover(
  { ledger, emit }: Pick<Parts, "ledger" | "emit">,
  onFailed: () => void = () => {},
): Promise<TransferRecord[]> {
  return ledger.recover((_path, error, end) => {
    onFailed();
    const fault = asFault(error);
    if (end === undefined) emit({ type: "recovery-failed", fault });
    else emit({ type: "transfer-stuck", record: end, fault });
  });
}

/** Reports placed deliveries, and starts their hand-offs. */
export function announce(
  placed: readonly TransferRecord[],
  { handoffs, emit }: Pick<Parts, "handoffs" | "emit">,
): void {
  for (const record of placed) {
    emit({ type: "transfer-changed", record });
    if (record.state === "delivered") handoffs.placed(record);
  }
}

/** Never throws: a step that fails is retried by the next sweep, and the others run. */
export async function sweep(tools: Parts): Promise<void> {
  const { live, ledger, mailboxes, passwords } = tools;
  // Another process may have a mailbox that is not configured here.
  const isShared = live.now.queue !== "embedded";
  const isListed = ({ mailbox, trackingId }: TransferRecord) =>
    mailboxes.states.get(mailboxIdOf(mailbox))?.mayList(trackingId) ?? isShared;
  const readOrdered = async () =>
    new Set((await listOrders(live.now.work)).map(({ order }) => order.trackingId));
  // The next sweep repeats a removal that fails.
  const orLater = (removal: Promise<void>) => removal.catch(() => {});
  await orLater(forgetUnusedPasswords(passwords, ledger, mailboxes.states, readOrdered));
  if (!mailboxes.isClockRight()) return;
  await orLater(passwords.forgetExpired());
  await orLater(ledger.sweep({ ...live.now.keep, isListed }));
}

/**
 * Removes supplied passwords of transfers that are known here and open for no mailbox. `readOrdered`: the
 * tracking-ids of orders, which may open their transfers again.
 */
export async function forgetUnusedPasswords(
  passwords: Pick<Passwords, "forgetDropped">,
  ledger: Pick<Ledger, "open" | "find">,
  mailboxes: ReadonlyMap<MailboxId, unknown>,
  readOrdered: () => Promise<ReadonlySet<string | undefined>>,
): Promise<void> {
  let isAnyDamaged = false;
  let ordered: ReadonlySet<string | undefined> | undefined;
  let unfinished: TransferRecord[] | undefined;
  await passwords.forgetDropped(async ({ trackingId, mailbox }) => {
    // Read first: an order that is carried out meanwhile leaves an open transfer.
    ordered ??= await readOrdered();
    unfinished ??= await Array.fromAsync(ledger.open(() => (isAnyDamaged = true)));
    const isFor = (name: string) => mailbox === undefined || mailboxIdOf(mailbox) === mailboxIdOf(name);
    const isOpen = unfinished.some(
      (it) => it.trackingId === trackingId && it.reason !== BROWSER && isFor(it.mailbox),
    );
    if (isAnyDamaged || isOpen || ordered.has(trackingId)) return false;
    // That of a mailbox that is no longer configured goes too.
    for (const name of mailbox === undefined ? mailboxes.keys() : [mailbox]) {
      // The password of a damaged record is kept.
      const known = await ledger.find({ mailbox: name, trackingId }).catch(() => undefined);
      if (known !== undefined) return true;
    }
    return false;
  });
}
