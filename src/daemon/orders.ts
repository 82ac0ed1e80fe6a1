/**
 * Carries out operators' orders as they arrive, and retries failed ones: those of one transfer in their sequence, and those of
 * each mailbox independently of the others. Each order is in the journal before it is carried out, except a poll, which gets
 * its line afterwards, with the outcome.
 */

import { Coalesced, forEachLimit, KeyedMutex, WaitGroup } from "../base/concurrency.ts";
import { asFault, Fault } from "../base/faults.ts";
import { monotonicMs } from "../base/timers.ts";
import { closeOrder, type GivenOrder, listOrders, takeEarlier } from "../ledger/orders.ts";
import { ledgerPaths } from "../ledger/paths.ts";
import { carryOut, type OrderTools } from "../mailbox/orders.ts";
import type { MailboxState } from "../mailbox/state.ts";
import { type Events, listenTo } from "../model/events.ts";
import type { Act } from "../model/order.ts";
import { isIncluded } from "../model/record.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import { lookAtChanges, REPEAT_MS } from "./folder-watch.ts";

/** For this long, a `discard` is left to a process that has its mailbox. Then any process carries it out. */
const LEFT_TO_OTHERS_MS = 60_000;
/** Transfers of one mailbox whose orders are carried out at the same time. */
const AT_ONCE = 8;

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
  events: Events,
  scope: AsyncDisposableStack,
): Promise<OrderRunner> {
  const runner = new OrderRunner(tools, mailboxes);
  scope.adopt(runner, (it) => it.idle());
  scope.adopt(events.subscribe(runner.listener), (unsubscribe) => unsubscribe());
  const { orders } = ledgerPaths(tools.work);
  const isOrder = (path: string, event: string) => event !== "other" && path.endsWith(".json");
  await lookAtChanges(orders, () => void runner.run(), tools.emit, scope, isOrder);
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
  /** Ids of orders that were carried out, whose effect may still be overwritten. */
  readonly #kept = new Set<string>();
  readonly #looks = new Coalesced(() => this.#look());
  /** By mailbox: one that waits for its service delays no other. */
  readonly #lanes = new KeyedMutex();
  readonly #work = new WaitGroup();
  /** As listed last, without those that are over since. */
  #given: readonly GivenOrder[] = [];
  #ranMs: number;

  constructor(tools: OrderRunnerTools, mailboxes: Mailboxes) {
    this.#tools = tools;
    this.#mailboxes = mailboxes;
    this.#ranMs = monotonicMs();
  }

  /** Orders that are not carried out yet. Polls have promises of their own. */
  get open(): readonly GivenOrder[] {
    return this.#given.filter(({ id, order }) => order.action !== "poll" && !this.#kept.has(id));
  }

  /** When the next run is due, on the monotonic clock. */
  get dueMs(): number {
    return this.#ranMs + REPEAT_MS;
  }

  /** A job that has read the note before an order has overwritten it: the order is repeated at once. */
  readonly listener = listenTo({
    "transfer-changed": ({ record }) => {
      const isLost = ({ id, number, order }: GivenOrder) =>
        this.#kept.has(id) && order.trackingId === record.trackingId && !isIncluded(number, record);
      if (this.#given.some(isLost)) void this.run();
    },
  });

  /** Resolves when every order given before the call was tried. */
  run(): Promise<void> {
    return this.#work.add(this.#run());
  }

  idle(): Promise<void> {
    return this.#work.wait();
  }

  async #run(): Promise<void> {
    // A failed look is repeated. Until one succeeds, `dueMs` says that it is late.
    await this.#looks.run().catch(() => {});
    const mailboxes = new Set(this.#given.map(mailboxOf));
    await Promise.all([...mailboxes].map((it) => this.#lanes.run(it, () => this.#runLane(it))));
  }

  async #look(): Promise<void> {
    const { work } = this.#tools;
    await takeEarlier(work);
    this.#given = await listOrders(work);
    this.#ranMs = monotonicMs();
    const ids = new Set(this.#given.map(({ id }) => id));
    for (const known of [this.#failing, this.#recorded, this.#kept]) {
      for (const id of known) if (!ids.has(id)) known.delete(id);
    }
  }

  async #runLane(mailbox: MailboxId): Promise<void> {
    const given = this.#given.filter((it) => mailboxOf(it) === mailbox);
    const transfers = Map.groupBy(given, ({ order }) => order.trackingId);
    await forEachLimit(transfers.values(), AT_ONCE, (orders) => this.#runInSequence(orders));
  }

  /**
   * An order that fails keeps later ones waiting. Orders for mailboxes that are not configured here are left alone, unless
   * any process can carry them out.
   */
  async #runInSequence(orders: readonly GivenOrder[]): Promise<void> {
    for (const each of orders) {
      const state = this.#mailboxes.get(mailboxOf(each));
      if (state === undefined && !this.#isForAnyProcess(each)) continue;
      // A poll runs in the background: a long list must not delay other orders.
      if (each.order.action === "poll") void this.#try(each, this.#poll(each));
      else if (!(await this.#try(each, this.#carryOut(state, each)))) return;
    }
  }

  /** Whether the work of an order succeeds. Reports its first failure. A stop is no failure. */
  async #try({ id, order }: GivenOrder, work: Promise<void>): Promise<boolean> {
    const fault = await work.then(() => undefined, asFault);
    const isNews = fault !== undefined && fault.code !== "STOPPED" && !this.#failing.has(id);
    if (isNews) this.#failing.add(id);
    if (isNews) this.#tools.emit({ type: "order-failed", order, fault });
    return fault === undefined;
  }

  async #carryOut(state: MailboxState | undefined, each: GivenOrder): Promise<void> {
    const { id } = each;
    const isNew = !this.#kept.has(id);
    if (!this.#recorded.has(id)) await this.#record(each);
    const progress = await carryOut(this.#tools, state, each).catch(async (error: unknown) => {
      const fault = asFault(error);
      if (fault.code !== "ORDER_IMPOSSIBLE") throw fault;
      await this.#record(each, fault);
      return "over";
    });
    if (progress === "kept") this.#kept.add(id);
    if (progress === "over") await this.#close(each);
    const isWorthPolling = isNew && state?.health.isFailing && !state.mailbox.paused;
    // An operator works on this mailbox, and may have removed the cause of its failure.
    if (isWorthPolling) this.#tools.queue.pollNow([mailboxOf(each)]).catch(() => {});
    this.#failing.delete(id);
  }

  async #close(each: GivenOrder): Promise<void> {
    await closeOrder(each);
    this.#given = this.#given.filter(({ id }) => id !== each.id);
  }

  /** The journal gets the outcome before the order is removed. If nothing was polled, the order is kept. */
  async #poll(each: GivenOrder): Promise<void> {
    const { queue, ledger, emit } = this.#tools;
    const { id, order } = each;
    const { mailbox, by, at } = order;
    const name = mailboxIdOf(mailbox);
    const stateNow = () => this.#mailboxes.get(name);
    const isPaused = () => stateNow()?.mailbox.paused === true;
    const lastBefore = stateNow()?.health.last;
    if (this.#polling.has(id)) return;
    this.#polling.add(id);
    try {
      if (stateNow() === undefined) return await this.#close(each);
      if (!isPaused()) await queue.pollNow([name]);
      const last = stateNow()?.health.last;
      const isPolled = last !== lastBefore;
      if (!isPolled && !isPaused()) return;
      const { fault, ...found } = isPolled ? (last ?? {}) : { fault: new Fault("MAILBOX_PAUSED") };
      const failure = fault && { reason: fault.code, message: fault.message };
      await ledger.recordAct({ id, act: "poll", ...by, given: at, mailbox, ...found, ...failure });
      emit({ type: "operator-acted", act: "poll", by, mailbox, trackingId: undefined });
      await this.#close(each);
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

  /** `fault`: it is impossible. A crash before the order is over leads to a second line with the same id. */
  async #record({ id, order }: GivenOrder, fault?: Fault): Promise<void> {
    const { ledger, emit } = this.#tools;
    this.#recorded.add(id);
    const { mailbox, trackingId, round, by, at } = order;
    // A damaged record is reported where the order is carried out.
    const found = trackingId === undefined ? undefined : await ledger.find(order).catch(() => undefined);
    const act: Act = "grants" in order && order.grants !== undefined ? "grant" : order.action;
    const given = { id, act, ...by, given: at, mailbox, trackingId, sender: found?.sender, round };
    await ledger.recordAct({ ...given, reason: fault?.code, message: fault?.message });
    if (fault === undefined) emit({ type: "operator-acted", act, by, mailbox, trackingId });
    else emit({ type: "order-failed", order, fault });
  }
}

function mailboxOf({ order }: GivenOrder): MailboxId {
  return mailboxIdOf(order.mailbox);
}
