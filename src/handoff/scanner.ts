/** Scans the outbox periodically. Memory is bounded: a scan reads a few entries at a time, and remembers `MAX_KNOWN`. */
import { setTimeout as pause } from "node:timers/promises";
import { forEachLimit, WaitGroup } from "../base/concurrency.ts";
import type { HandoffStep } from "../model/handoff.ts";
import type { TransferRecord } from "../model/record.ts";
import { checkDelivery, isUpToDate } from "./check.ts";
import { deliveryOf } from "./delivery.ts";
import { dueSteps, EMPTY_ENTRY, type Entry, failedSteps } from "./entry.ts";
import type { Outbox } from "./outbox.ts";
import { type OutboxDelivery, readOutboxDelivery } from "./outbox-delivery.ts";
import type { FoundEntry } from "./peek.ts";
import { Summary } from "./summary.ts";
import type { HandoffTools } from "./tools.ts";

/** Scans take at most this share of the time, so the pause after a long scan is long. */
const MAX_SHARE = 0.02;
/** The share does not apply to fewer entries: such a scan is cheap, and takes long only on a busy machine. */
const FEW = 100;
/** The longest pause, even if scans take long on a slow disk. */
const LONGEST_PAUSE_MS = 30 * 60_000;
/** Entries that are read at the same time: one after the other would mostly wait. */
const AT_ONCE = 8;
/** Deliveries whose entry and end record need not be read again. */
const MAX_KNOWN = 5_000;
/** Failing entries that are counted. */
const MAX_FAILING = 10_000;

export interface ScanHooks {
  due(key: string, step: HandoffStep): void;
  /** A check failed. Returns whether others will fail too. */
  failed(key: string, error: unknown): boolean;
  /** A whole scan succeeded. */
  succeeded(): void;
}

export class Scanner {
  readonly #tools: HandoffTools;
  readonly #outbox: Outbox;
  readonly #hooks: ScanHooks;
  readonly #stop = new AbortController();
  readonly #failing = new Set<string>();
  /** Checks outside of scans. */
  readonly #extra = new WaitGroup();
  #repeated: Promise<void> = Promise.resolve();
  /** Deliveries that only wait to be picked up, where no other process changes their entries. */
  readonly #known = new Map<string, OutboxDelivery>();
  /** How many changes of entries there were. */
  #changes = 0;
  /** How many entries the last scan saw. */
  #seen = 0;
  /** The first scan finds folders by their manifests. */
  #isFirst = true;

  constructor(tools: HandoffTools, outbox: Outbox, hooks: ScanHooks) {
    this.#tools = tools;
    this.#outbox = outbox;
    this.#hooks = hooks;
  }

  start(): void {
    this.#repeated = this.#repeat();
  }

  /** How many entries had a failed step when last seen. */
  failing(): number {
    return this.#failing.size;
  }

  /** Returns how many steps were due at `byMs`. Never throws: the next scan tries again. */
  async scan(byMs?: number): Promise<number> {
    const { signal } = this.#stop;
    if (signal.aborted) return 0;
    let [due, isGood] = [0, true];
    const fail = (key: string, error: unknown) => {
      if (this.#hooks.failed(key, error)) isGood = false;
      return undefined;
    };
    const summary = new Summary(this.#tools.handoff());
    this.#failing.clear();
    this.#seen = 0;
    const checkFile = async (found: FoundEntry) => {
      signal.throwIfAborted();
      this.#seen++;
      const { key } = found;
      const check = this.#read(found).then((item) => item && this.#check(key, item, byMs));
      const seen = await check.catch((error: unknown) => fail(key, error));
      if (seen === undefined) return;
      summary.add(seen.stored.entry, seen.delivery);
      due += this.#dueSteps(seen.stored.entry, byMs).length;
    };
    try {
      await forEachLimit(this.#outbox.list(), AT_ONCE, checkFile);
      this.#isFirst = false;
    } catch (error) {
      if (signal.aborted) return due;
      fail("", error);
    }
    if (isGood) this.#hooks.succeeded();
    this.#tools.emit({ type: "handoffs-checked", summary });
    return due;
  }

  /** The entry was changed: checks it without waiting for the next scan. */
  checkSoon(key: string, entry: Entry): void {
    this.#countFailing(key, entry);
    const check = async () => {
      const stored = await this.#outbox.find(key);
      const item = stored && (await readOutboxDelivery(this.#tools, key, stored));
      if (item !== undefined) await this.#check(key, item);
    };
    void this.#extra.add(check().catch((error: unknown) => this.#hooks.failed(key, error)));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#repeated, this.#extra.wait()]);
  }

  async #repeat(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const startedMs = performance.now();
      await this.scan();
      const tookMs = performance.now() - startedMs;
      const { scanMs } = this.#tools.patience;
      const pauseMs = this.#seen < FEW ? scanMs : Math.max(scanMs, tookMs * (1 / MAX_SHARE - 1));
      await pause(Math.min(pauseMs, LONGEST_PAUSE_MS), undefined, { signal }).catch(() => {});
    }
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

  /** `undefined` where the entry is finished, or its round is open. Takes the entry's lock only to change something. */
  async #check(key: string, item: OutboxDelivery, byMs?: number): Promise<OutboxDelivery | undefined> {
    const isThorough = this.#isFirst && !this.#known.has(key);
    const changes = this.#changes;
    const isDone = await isUpToDate(this.#tools, item, isThorough);
    const seen = isDone
      ? item
      : await this.#outbox.change(key, () => checkDelivery(this.#tools, this.#outbox, key));
    if (isDone && changes === this.#changes) this.#know(item);
    if (seen === undefined) {
      this.#failing.delete(key);
      return undefined;
    }
    this.#countFailing(key, seen.stored.entry);
    for (const step of this.#dueSteps(seen.stored.entry, byMs)) this.#hooks.due(key, step);
    return seen;
  }

  #dueSteps(entry: Entry, byMs = this.#tools.clock.now()): HandoffStep[] {
    return dueSteps(entry, this.#tools.handoff(), byMs);
  }

  #countFailing(key: string, entry: Entry): void {
    if (failedSteps(entry, this.#tools.handoff()).length === 0) this.#failing.delete(key);
    else if (this.#failing.size < MAX_FAILING) this.#failing.add(key);
  }
}
