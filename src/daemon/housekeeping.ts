/** Regular clean-up: finishes deliveries of processes that died, and removes expired records and passwords. */

import { Coalesced } from "../base/concurrency.ts";
import { asFault } from "../base/faults.ts";
import type { Scope } from "../base/scope.ts";
import { clearInterval, setInterval } from "../base/timers.ts";
import type { Handoffs } from "../handoff/port.ts";
import { listOrders } from "../ledger/orders.ts";
import type { OnUnrecovered } from "../ledger/port.ts";
import { forgetUnusedPasswords } from "../mailbox/unfinished.ts";
import type { AttemptKey } from "../model/attempts.ts";
import type { Emit } from "../model/events.ts";
import type { TransferRecord } from "../model/record.ts";
import { mailboxIdOf } from "../model/transfer.ts";
import type { Parts } from "./parts.ts";

/** Each sweep checks one of 256 parts of the ledger: all of them in a day. */
const SWEEP_EVERY_MS = 5 * 60_000;

type HousekeepingTools = Pick<
  Parts,
  "live" | "ledger" | "mailboxes" | "passwords" | "handoffs" | "emit" | "demandFolders"
>;

/** Runs until the scope ends. */
export function startHousekeeping(tools: HousekeepingTools, scope: Scope): void {
  const runs = new Coalesced(async () => {
    await tools.demandFolders();
    // Each is a trouble of its own.
    await finishDeliveries(tools, () => {}).catch((error: unknown) =>
      tools.emit({ type: "recovery-failed", fault: asFault(error) }),
    );
    await sweep(tools);
  });
  // It fails only if a folder is lost, which is a trouble of its own.
  const timer = setInterval(() => void (runs.isIdle && runs.run().catch(() => {})), SWEEP_EVERY_MS);
  scope.use(timer, async () => {
    clearInterval(timer);
    await runs.idle();
  });
}

/** Places deliveries that were decided but not placed. `onFailed` is called for each that cannot be placed. */
export async function finishDeliveries(
  { ledger, handoffs, emit }: Pick<Parts, "ledger" | "handoffs" | "emit">,
  onFailed: () => void,
): Promise<void> {
  const report: OnUnrecovered = (_path, error, end) => {
    onFailed();
    const fault = asFault(error);
    if (end === undefined) emit({ type: "recovery-failed", fault });
    else emit({ type: "transfer-stuck", record: end, fault });
  };
  await announce(await ledger.recover(report), handoffs, emit);
}

/** Reports placed deliveries, and starts their hand-offs. */
export async function announce(
  placed: readonly TransferRecord[],
  handoffs: Handoffs,
  emit: Emit,
): Promise<void> {
  for (const record of placed) {
    emit({ type: "transfer-changed", record });
    if (record.state === "delivered") await handoffs.placed(record);
  }
}

/** Never throws: a step that fails is retried by the next sweep, and the others run. */
export async function sweep(tools: HousekeepingTools): Promise<void> {
  const { live, ledger, mailboxes, passwords } = tools;
  // Another process may have the mailbox.
  const isShared = live.now.queue !== "embedded";
  const isListed = ({ mailbox, trackingId }: TransferRecord) =>
    mailboxes.states.get(mailboxIdOf(mailbox))?.mayList(trackingId) ?? isShared;
  const isOrdered = async (trackingId: string) =>
    (await listOrders(live.now.work)).some(({ order }) => order.trackingId === trackingId);
  // Only removals, which the next sweep tries again.
  const orLater = (removal: Promise<void>) => removal.catch(() => {});
  await orLater(forgetUnusedPasswords(passwords, ledger, mailboxes.states, isOrdered));
  if (!mailboxes.isClockRight()) return;
  await orLater(passwords.forgetExpired());
  const listed = () => attemptKeysOf(mailboxes);
  await orLater(ledger.sweep({ ...live.now.keep, isListed, listed }));
}

/** The keys of all listed transfers; `undefined` until every list is known. */
function attemptKeysOf(mailboxes: Parts["mailboxes"]): AttemptKey[] | undefined {
  const states = [...mailboxes.states.values()];
  if (!states.every((state) => state.isListKnown)) return undefined;
  return states.flatMap(({ service, transfers }) =>
    [...transfers.trackingIds()].map((trackingId) => ({ serviceId: service.id, trackingId })),
  );
}
