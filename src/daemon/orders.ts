/**
 * Carries out operators' orders as they arrive, one after the other, and retries failed ones. The journal has each order
 * before it is carried out.
 */

import { Coalesced } from "../base/concurrency.ts";
import { asFault, Fault } from "../base/faults.ts";
import { clearInterval, setInterval } from "../base/timers.ts";
import { type GivenOrder, listOrders, watchOrders } from "../ledger/orders.ts";
import { carryOut, type OrderTools } from "../mailbox/orders.ts";
import type { MailboxState } from "../mailbox/state.ts";
import type { Act } from "../model/order.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";

const LOOK_EVERY_MS = 30_000;
/** For this long, a `discard` is left to a process that has its mailbox. Then any process carries it out. */
const LEFT_TO_OTHERS_MS = 60_000;

export interface OrderRunner {
  /** Resolves when every order given before the call was tried. */
  run(): Promise<void>;
  /** Orders that the last run has not carried out. */
  open(): readonly GivenOrder[];
  /** When the next run is due. */
  dueMs(): number;
  close(): Promise<void>;
}

interface OrderRunnerTools extends OrderTools {
  readonly work: string;
  /** Other processes may have mailboxes that this one does not have. */
  readonly isShared?: boolean;
}

/** Orders that this process knows, by id. */
export class KnownOrders {
  /** Their failure was reported. */
  readonly failing = new Set<string>();
  /** The journal has them. */
  readonly recorded = new Set<string>();
  /** Their polls are running. */
  readonly polling = new Set<string>();
  /** Not carried out yet. */
  open: readonly GivenOrder[] = [];

  forgetAllBut(given: readonly GivenOrder[]): void {
    const ids = new Set(given.map(({ id }) => id));
    for (const known of [this.failing, this.recorded]) {
      for (const id of known) if (!ids.has(id)) known.delete(id);
    }
  }
}

export async function startOrderRunner(
  tools: OrderRunnerTools,
  mailboxes: ReadonlyMap<MailboxId, MailboxState>,
): Promise<OrderRunner> {
  const known = new KnownOrders();
  let ranMs = tools.clock.now();
  const runs = new Coalesced(() =>
    runOrders(tools, mailboxes, known).then(
      () => {
        ranMs = tools.clock.now();
      },
      // It is repeated, and is late then.
      () => {},
    ),
  );
  const watcher = await watchOrders(
    tools.work,
    () => void runs.run(),
    (fault) => tools.emit({ type: "folder-unwatchable", fault }),
  );
  const timer = setInterval(() => void runs.run(), LOOK_EVERY_MS);
  return {
    run: () => runs.run(),
    open: () => known.open,
    dueMs: () => ranMs + LOOK_EVERY_MS,
    async close() {
      clearInterval(timer);
      await watcher.close();
      await runs.idle();
    },
  };
}

/**
 * A failed order does not delay the others. Orders for mailboxes that are not configured here are left alone, except
 * `discard`, which needs no service.
 */
export async function runOrders(
  tools: OrderRunnerTools,
  mailboxes: ReadonlyMap<MailboxId, MailboxState>,
  known: KnownOrders,
): Promise<void> {
  const given = await listOrders(tools.work);
  known.forgetAllBut(given);
  // A poll has its own promise.
  known.open = given.filter(({ order }) => order.action !== "poll");
  for (const each of given) {
    const { order } = each;
    const state = mailboxes.get(mailboxIdOf(order.mailbox));
    if (state === undefined && !isForAnyProcess(tools, each)) continue;
    const fail = (error: unknown) => reportOnce(tools, each, known, asFault(error));
    // A poll runs in the background: a long list must not delay other orders.
    if (order.action === "poll") void poll(tools, mailboxes, each, known).catch(fail);
    else if ((await carryOutOne(tools, state, each, known).catch(fail)) === "STOPPED") return;
  }
}

async function carryOutOne(
  tools: OrderRunnerTools,
  state: MailboxState | undefined,
  each: GivenOrder,
  known: KnownOrders,
): Promise<void> {
  const { id, order, remove } = each;
  await recordOnce(tools, each, known);
  if (await carryOut(tools, state, order)) {
    await remove();
    known.open = known.open.filter((it) => it !== each);
  }
  const isWorthPolling = state?.health.isFailing && !state.mailbox.paused;
  // An operator is at work on this mailbox, so it is polled at once.
  if (isWorthPolling) tools.queue.pollNow([mailboxIdOf(order.mailbox)]).catch(() => {});
  known.failing.delete(id);
}

function reportOnce(
  { emit }: OrderRunnerTools,
  { id, order }: GivenOrder,
  { failing }: KnownOrders,
  fault: Fault,
): Fault["code"] {
  if (fault.code !== "STOPPED" && !failing.has(id)) emit({ type: "order-failed", order, fault });
  if (fault.code !== "STOPPED") failing.add(id);
  return fault.code;
}

/** The journal gets the outcome before the order is removed. If nothing was polled, the order is kept. */
async function poll(
  { queue, ledger, emit }: OrderRunnerTools,
  mailboxes: ReadonlyMap<MailboxId, MailboxState>,
  { id, order, remove }: GivenOrder,
  { polling }: KnownOrders,
): Promise<void> {
  const { mailbox, by, at } = order;
  const name = mailboxIdOf(mailbox);
  const isPaused = () => mailboxes.get(name)?.mailbox.paused === true;
  const before = mailboxes.get(name)?.health.last;
  if (polling.has(id)) return;
  polling.add(id);
  try {
    if (!mailboxes.has(name)) return await remove();
    if (!isPaused()) await queue.pollNow([name]);
    const now = mailboxes.get(name)?.health.last;
    if (now === before && !isPaused()) return;
    const { fault, ...found } = now === before ? { fault: new Fault("MAILBOX_PAUSED") } : (now ?? {});
    const failure = fault && { reason: fault.code, message: fault.message };
    await ledger.recordAct({ id, act: "poll", ...by, given: at, mailbox, ...found, ...failure });
    emit({ type: "operator-acted", act: "poll", by, mailbox, trackingId: undefined });
    await remove();
  } finally {
    polling.delete(id);
  }
}

function isForAnyProcess({ isShared, clock }: OrderRunnerTools, { order }: GivenOrder): boolean {
  // They only concern the journal.
  if (order.action === "pause" || order.action === "resume") return true;
  if (order.action !== "discard" && order.action !== "poll") return false;
  return !isShared || clock.now() - Date.parse(order.at) >= LEFT_TO_OTHERS_MS;
}

/** A crash before the order's removal leads to a second line with the same id. */
async function recordOnce(
  { ledger, emit }: OrderRunnerTools,
  given: GivenOrder,
  known: KnownOrders,
): Promise<void> {
  const { id, order } = given;
  if (known.recorded.has(id)) return;
  known.recorded.add(id);
  const { mailbox, trackingId, round, by, at } = order;
  // A damaged record is reported where the order is carried out.
  const found = trackingId === undefined ? undefined : await ledger.find(order).catch(() => undefined);
  const act: Act = "grants" in order && order.grants !== undefined ? "grant" : order.action;
  await ledger.recordAct({ id, act, ...by, given: at, mailbox, trackingId, sender: found?.sender, round });
  emit({ type: "operator-acted", act, by, mailbox, trackingId });
}
