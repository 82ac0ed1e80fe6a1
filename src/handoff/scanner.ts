/** Scans the outbox periodically. Memory is bounded: a scan visits few entries at a time, and remembers few. */

import { forEachLimit, WaitGroup } from "../base/concurrency.ts";
import { monotonicMs, pauseOrAbort } from "../base/timers.ts";
import type { HandoffStep } from "../model/handoff.ts";
import type { TransferRecord } from "../model/record.ts";
import { type Delivery, deliveryOf } from "./delivery.ts";
import { dueSteps, EMPTY_ENTRY, type Entry, failedSteps } from "./entry.ts";
import { advanceFolder, isUpToDate } from "./folder-lifecycle.ts";
import type { Outbox } from "./outbox.ts";
import { type OutboxDelivery, readOutboxDelivery } from "./outbox-delivery.ts";
import type { FoundEntry } from "./peek.ts";
import { Summary } from "./summary.ts";
import { followingOf, type HandoffTools } from "./tools.ts";

/** Scans take at most this share of the time, so the pause after a long scan is long. */
const MAX_SHARE = 0.02;
/** The share does not apply to fewer entries: such a scan is cheap, and takes long only on a busy machine. */
const FEW = 100;
/** The longest pause, even if scans take long on a slow disk. */
const LONGEST_PAUSE_MS = 30 * 60_000;
/** Entries that are visited in parallel, because a visit mostly waits for the disk. */
const AT_ONCE = 8;
/** Deliveries that are remembered, so that their entry and end record need not be read again. */
const MAX_KNOWN = 5_000;
/** Failing entries that are counted. */
const MAX_FAILING = 10_000;

export interface ScanHooks {
  due(key: string, step: HandoffStep): void;
  /** A visit failed. Returns whether others will fail too. */
  failed(key: string, error: unknown): boolean;
  /** A whole scan succeeded. */
  succeeded(): void;
}

interface Visited {
  readonly item: OutboxDelivery;
  readonly dueCount: number;
}

export class Scanner {
  readonly #tools: HandoffTools;
  readonly #outbox: Outbox;
  readonly #hooks: ScanHooks;
  readonly #stop = new AbortController();
  readonly #failing = new Set<string>();
  /** Visits outside of scans. */
  readonly #extra = new WaitGroup();
  #loop: Promise<void> = Promise.resolve();
  /** Deliveries that only wait to be picked up. Empty if other processes may change their entries. */
  readonly #known = new Map<string, OutboxDelivery>();
  /** How many changes of entries there were. */
  #changes = 0;
  /** How many entries the last scan saw. */
  #seen = 0;
  /** A scan has listed all entries. */
  #hasSummary = false;
  /** When the next entry is visited, or the next scan begins. */
  dueMs: number | undefined;
  /** The first scan finds folders by their manifests. */
  #isFirst = true;

  constructor(tools: HandoffTools, outbox: Outbox, hooks: ScanHooks) {
    this.#tools = tools;
    this.#outbox = outbox;
    this.#hooks = hooks;
  }

  start(): void {
    this.#loop = this.#repeat();
  }

  /** How many entries had a failed step when last seen. */
  failing(): number {
    return this.#failing.size;
  }

  /** Returns how many steps were due at `byMs`. Never throws: the next scan tries again. */
  async scan(byMs?: number): Promise<number> {
    const { signal } = this.#stop;
    if (signal.aborted) return 0;
    let [due, isGood, isListed] = [0, true, false];
    const summary = new Summary(this.#tools);
    const fail = (key: string, error: unknown): undefined => {
      if (this.#hooks.failed(key, error)) isGood = false;
      if (key !== "") summary.addUnreadable();
    };
    const failingBefore = [...this.#failing];
    this.#failing.clear();
    this.#seen = 0;
    const visitFound = async (found: FoundEntry) => {
      signal.throwIfAborted();
      this.#seen++;
      this.#noteDue(0);
      const { key } = found;
      const visit = this.#read(found).then((item) => item && this.#visit(key, item, byMs));
      const visited = await visit.catch((error: unknown) => fail(key, error));
      if (visited === undefined) return;
      summary.add(visited.item.stored.entry, visited.item.delivery);
      due += visited.dueCount;
    };
    try {
      await forEachLimit(this.#outbox.list(), AT_ONCE, visitFound);
      isListed = true;
      this.#isFirst = false;
    } catch (error) {
      if (signal.aborted) return due;
      fail("", error);
      for (const key of failingBefore) this.#failing.add(key);
    }
    if (isGood) this.#hooks.succeeded();
    // Else the last summary of all entries stays in force. Before the first one, a partial one is better than none.
    if (isListed || !this.#hasSummary) this.#tools.emit({ type: "outbox-scanned", summary });
    this.#hasSummary ||= isListed;
    return due;
  }

  /** The entry was changed: visits it without waiting for the next scan. */
  visitSoon(key: string, entry: Entry, delivery: Delivery): void {
    this.#countFailing(key, entry, delivery);
    const visit = async () => {
      const stored = await this.#outbox.find(key);
      const item = stored && (await readOutboxDelivery(this.#tools, key, stored));
      if (item !== undefined) await this.#visit(key, item);
    };
    void this.#extra.add(visit().catch((error: unknown) => this.#hooks.failed(key, error)));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#loop, this.#extra.wait()]);
  }

  async #repeat(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const startedMs = monotonicMs();
      this.#noteDue(0);
      await this.scan();
      const tookMs = monotonicMs() - startedMs;
      const { scanMs } = this.#tools.patience;
      const pauseMs = this.#seen < FEW ? scanMs : Math.max(scanMs, tookMs * (1 / MAX_SHARE - 1));
      this.#noteDue(Math.min(pauseMs, LONGEST_PAUSE_MS));
      await pauseOrAbort(Math.min(pauseMs, LONGEST_PAUSE_MS), signal);
    }
  }

  #noteDue(inMs: number): void {
    this.dueMs = this.#tools.clock.now() + inMs;
  }

  /** The folder was just placed: nothing has to be read. */
  notePlaced(key: string, end: TransferRecord): void {
    this.#know({ key, end, stored: { entry: EMPTY_ENTRY, kind: "wait" }, delivery: deliveryOf(key, end) });
  }

  /** The entry is being changed. */
  noteChanged(key: string): void {
    this.#known.delete(key);
    this.#changes++;
  }

  #know(item: OutboxDelivery): void {
    const isFull = this.#known.size >= MAX_KNOWN;
    if (this.#tools.isAlone && item.stored.kind === "wait" && !isFull) this.#known.set(item.key, item);
  }

  async #read(found: FoundEntry): Promise<OutboxDelivery | undefined> {
    const known = found.kind === "wait" ? this.#known.get(found.key) : undefined;
    if (known !== undefined) return known;
    const stored = await this.#outbox.peek(found);
    return stored && readOutboxDelivery(this.#tools, found.key, stored);
  }

  /**
   * Brings a folder up to date, and adds the due steps. `undefined` if the entry is finished or not ready. Takes the
   * entry's lock only to change something. If another process holds it, nothing is due here.
   */
  async #visit(key: string, found: OutboxDelivery, byMs?: number): Promise<Visited | undefined> {
    const isThorough = this.#isFirst && !this.#known.has(key);
    const changesBefore = this.#changes;
    const isDone = await isUpToDate(this.#tools, found, isThorough);
    if (isDone && changesBefore === this.#changes) this.#know(found);
    // Stays true if `change` does not run `advance`: another process has the lock.
    let isHeldElsewhere = !isDone;
    const advance = () => {
      isHeldElsewhere = false;
      return advanceFolder(this.#tools, this.#outbox, key);
    };
    const changed = isDone ? found : await this.#outbox.change(key, advance);
    const item = isHeldElsewhere ? found : changed;
    if (item === undefined) {
      this.#failing.delete(key);
      return undefined;
    }
    const { entry } = item.stored;
    this.#countFailing(key, entry, item.delivery);
    const following = followingOf(this.#tools, item.delivery);
    const steps = isHeldElsewhere ? [] : dueSteps(entry, following, byMs ?? this.#tools.clock.now());
    for (const step of steps) this.#hooks.due(key, step);
    return { item, dueCount: steps.length };
  }

  #countFailing(key: string, entry: Entry, delivery: Delivery): void {
    if (failedSteps(entry, followingOf(this.#tools, delivery)).length === 0) this.#failing.delete(key);
    else if (this.#failing.size < MAX_FAILING) this.#failing.add(key);
  }
}
