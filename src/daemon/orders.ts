/**
 * Carries out operators' orders as they arrive, one after the other, and retries failed ones. Each order is in the journal
 * before it is carried out, except a poll, which gets its line afterwards, with the outcome.
 */

import { Coalesced } from "../base/concurrency.ts";
import { asFault, Fault } from "../base/faults.ts";
import { clearInterval, monotonicMs, setInterval } from "../base/timers.ts";
import { type GivenOrder, listOrders, watchOrders } from "../ledger/orders.ts";
import { carryOut, type OrderTools } from "../mailbox/orders.ts";
import type { MailboxState } from "../mailbox/state.ts";
import type { Act } from "../model/order.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";

const LOOK_EVERY_MS = 30_000;
/** For this long, a `discard` is left to a process that has its mailbox. Then any process carries it out. */
const LEFT_TO_OTHERS_MS = 60_000;

interface OrderRunnerTools extends OrderTools {
  readonly work: string;
  /** Other processes may have mailboxes that this one does not have. */
  readonly isShared?: boolean;
}

type Mailboxes = ReadonlyMap<MailboxId, MailboxState>;

/** Looks for orders at each change and regularly, until the scope ends. */
export async function startOrderRunner(
  tools: OrderRunnerTools,
  mailboxes: Mailboxes,
  scope: AsyncDisposableStack,
): Promise<OrderRunner> {
  const runner = new OrderRunner(tools, mailboxes);
  scope.adopt(runner, (it) => it.idle());
  const watcher = await watchOrders(
    tools.work,
    () => void runner.run(),
    (fault) => tools.emit({ type: "folder-unwatchable", fault }),
  );
  scope.adopt(watcher, (it) => it.close());
  const timer = setInterval(() => void runner.run(), LOOK_EVERY_MS);
  scope.adopt(timer, clearInterval);
  return runner;
}

export class OrderRunner {
  readonly #tools: OrderRunnerTools;
  readonly #mailboxes: Mailboxes;
  /** Ids of orders whose failure was reported. */
  readonly #failing = new Set<string>();
  /** Ids of orders that this process has added to the journal. */
  readonly #recorded = new Set<string>();
  /** Ids of orders whose polls are running. */
  readonly #polling = new Set<string>();
  readonly #runs = new Coalesced(async () => {
    await this.#run();
    this.#ranMs = monotonicMs();
  });
  #open: readonly GivenOrder[] = [];
  #ranMs: number;

  constructor(tools: OrderRunnerTools, mailboxes: Mailboxes) {
    this.#tools = tools;
    this.#mailboxes = mailboxes;
    this.#ranMs = monotonicMs();
  }

  /** Orders that the last run has not carried out. */
  get open(): readonly GivenOrder[] {
    return this.#open;
  }

  /** When the next run is due, on the monotonic clock. */
  get dueMs(): number {
    return this.#ranMs + LOOK_EVERY_MS;
  }

  /** Resolves when every order given before the call was tried. */
  run(): Promise<void> {
    // A failed run is repeated. Until one succeeds, `dueMs` says that it is late.
    return this.#runs.run().catch(() => {});
  }

  idle(): Promise<void> {
    return this.#runs.idle();
  }

  /**
   * A failed order does not delay the others. Orders for mailboxes that are not configured here are left alone, unless any
   * process can carry them out.
   */
  async #run(): Promise<void> {
    const given = await listOrders(this.#tools.work);
    const ids = new Set(given.map(({ id }) => id));
    for (const known of [this.#failing, this.#recorded]) {
      for (const id of known) if (!ids.has(id)) known.delete(id);
    }
    // Polls have promises of their own.
    this.#open = given.filter(({ order }) => order.action !== "poll");
    for (const each of given) {
      const { order } = each;
      const state = this.#mailboxes.get(mailboxIdOf(order.mailbox));
      if (state === undefined && !this.#isForAnyProcess(each)) continue;
      // A poll runs in the background: a long list must not delay other orders.
      if (order.action === "poll") void this.#try(each, this.#poll(each));
      else if ((await this.#try(each, this.#carryOut(state, each))) === "stopped") return;
    }
  }

  /** Waits for the work of an order. Reports its first failure. A stop is no failure. */
  async #try({ id, order }: GivenOrder, work: Promise<void>): Promise<"done" | "failed" | "stopped"> {
    const fault = await work.then(() => undefined, asFault);
    if (fault === undefined) return "done";
    if (fault.code === "STOPPED") return "stopped";
    if (!this.#failing.has(id)) this.#tools.emit({ type: "order-failed", order, fault });
    this.#failing.add(id);
    return "failed";
  }

  async #carryOut(state: MailboxState | undefined, each: GivenOrder): Promise<void> {
    const { id, order, remove } = each;
    await this.#recordOnce(each);
    if (await carryOut(this.#tools, state, order)) {
      await remove();
      this.#open = this.#open.filter((it) => it !== each);
    }
    const isWorthPolling = state?.health.isFailing && !state.mailbox.paused;
    // An operator works on this mailbox, and may have removed the cause of its failure.
    if (isWorthPolling) this.#tools.queue.pollNow([mailboxIdOf(order.mailbox)]).catch(() => {});
    this.#failing.delete(id);
  }

  /** The journal gets the outcome before the order is removed. If nothing was polled, the order is kept. */
  async #poll({ id, order, remove }: GivenOrder): Promise<void> {
    const { queue, ledger, emit } = this.#tools;
    const { mailbox, by, at } = order;
    const name = mailboxIdOf(mailbox);
    const stateNow = () => this.#mailboxes.get(name);
    const isPaused = () => stateNow()?.mailbox.paused === true;
    const lastBefore = stateNow()?.health.last;
    if (this.#polling.has(id)) return;
    this.#polling.add(id);
    try {
      if (stateNow() === undefined) return await remove();
      if (!isPaused()) await queue.pollNow([name]);
      const last = stateNow()?.health.last;
      const isPolled = last !== lastBefore;
      if (!isPolled && !isPaused()) return;
      const { fault, ...found } = isPolled ? (last ?? {}) : { fault: new Fault("MAILBOX_PAUSED") };
      const failure = fault && { reason: fault.code, message: fault.message };
      await ledger.recordAct({ id, act: "poll", ...by, given: at, mailbox, ...found, ...failure });
      emit({ type: "operator-acted", act: "poll", by, mailbox, trackingId: undefined });
      await remove();
    } finally {
      this.#polling.delete(id);
    }
  }

  #isForAnyProcess({ order }: GivenOrder): boolean {
    const { isShared, clock } = this.#tools;
    // These orders only get a line in the journal: the file of a pause has the effect.
    if (order.action === "pause" || order.action === "resume") return true;
    if (order.action !== "discard" && order.action !== "poll") return false;
    return !isShared || clock.now() - Date.parse(order.at) >= LEFT_TO_OTHERS_MS;
  }

  /** A crash before the order's removal leads to a second line with the same id. */
  async #recordOnce({ id, order }: GivenOrder): Promise<void> {
    const { ledger, emit } = this.#tools;
    if (this.#recorded.has(id)) return;
    this.#recorded.add(id);
    const { mailbox, trackingId, round, by, at } = order;
    // A damaged record is reported where the order is carried out.
    const found = trackingId === undefined ? undefined : await ledger.find(order).catch(() => undefined);
    const act: Act = "grants" in order && order.grants !== undefined ? "grant" : order.action;
    await ledger.recordAct({ id, act, ...by, given: at, mailbox, trackingId, sender: found?.sender, round });
    emit({ type: "operator-acted", act, by, mailbox, trackingId });
  }
}
