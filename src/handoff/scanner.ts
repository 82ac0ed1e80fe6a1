/** Scans the outbox periodically, a few entries at a time: brings folders up to date, and adds due steps. */
import { forEachLimit } from "../base/concurrency.ts";
import { monotonicMs, pauseOrAbort } from "../base/timers.ts";
import type { Entry } from "../model/outbox.ts";
import {
  type Delivery,
  followingOf,
  type OutboxDelivery,
  type OutboxTools,
  readOutboxDelivery,
} from "./delivery.ts";
import { dueSteps } from "./entry.ts";
import { advanceFolder, isUpToDate } from "./folder-lifecycle.ts";
import { type FoundEntry, listEntries, SCAN } from "./outbox.ts";
import { Summary } from "./peek.ts";
import type { Steps } from "./steps.ts";

/** Scans take at most this share of the time, so the pause after a long scan is long. */
const MAX_SHARE = 0.02;
/** The share does not apply to fewer entries: such a scan is cheap, and takes long only on a busy machine. */
const FEW = 100;
/** The longest pause, even if scans take long on a slow disk. */
const LONGEST_PAUSE_MS = 30 * 60_000;
/** Entries that are visited in parallel, because a visit mostly waits for the disk. */
const AT_ONCE = 8;

export class Scanner {
  readonly #tools: OutboxTools;
  readonly #steps: Pick<Steps, "add">;
  readonly #stop = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  /** How many entries the last scan saw. */
  #seen = 0;
  /** Of the last scan that has listed all entries; `#running`: of the scan that runs now. */
  #summary: Summary | undefined;
  #running: Summary | undefined;
  /** When the next entry is visited, or the next scan begins, on the monotonic clock. */
  dueMs: number | undefined;

  constructor(tools: OutboxTools, steps: Pick<Steps, "add">) {
    this.#tools = tools;
    this.#steps = steps;
  }

  /** How many entries had a failed step when last seen. */
  get failing(): number {
    return this.#summary?.failing ?? 0;
  }

  /** A step has changed the entry. */
  note(key: string, entry: Entry, delivery: Delivery): void {
    for (const summary of [this.#summary, this.#running]) summary?.note(key, entry, delivery);
  }

  start(): void {
    this.#loop = this.#repeat();
  }

  /** Returns how many steps were due at `byMs`, on the monotonic clock. Never throws: the next scan tries again. */
  async scan(byMs?: number): Promise<number> {
    const { signal } = this.#stop;
    if (signal.aborted) return 0;
    const { work, failures, emit } = this.#tools;
    const summary = new Summary(this.#tools);
    this.#running = summary;
    let [due, isDiskGood, isListed] = [0, true, true];
    const fail = (key: string, error: unknown) => {
      if (failures.failed(key, error)) isDiskGood = false;
    };
    this.#seen = 0;
    const visit = async (found: FoundEntry) => {
      signal.throwIfAborted();
      this.#seen++;
      this.#noteDue(0);
      try {
        const visited = await this.#visit(found, byMs);
        due += visited?.due ?? 0;
        if (visited !== undefined) summary.add(found.key, visited.item.entry, visited.item.delivery);
      } catch (error) {
        fail(found.key, error);
        // Counted without its age, which is unknown.
        summary.waiting++;
      }
    };
    try {
      await forEachLimit(listEntries(work), AT_ONCE, visit);
    } catch (error) {
      if (signal.aborted) return due;
      fail("", error);
      isListed = false;
    }
    if (isDiskGood) failures.outage.clear(SCAN);
    // A partial summary is used only until there is a complete one.
    if (isListed || this.#summary === undefined) emit({ type: "outbox-scanned", summary });
    if (isListed) this.#summary = summary;
    return due;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }

  async #repeat(): Promise<void> {
    const { signal } = this.#stop;
    const { scanMs } = this.#tools.patience;
    while (!signal.aborted) {
      const startedMs = monotonicMs();
      this.#noteDue(0);
      await this.scan();
      const tookMs = monotonicMs() - startedMs;
      const wantedMs = this.#seen < FEW ? scanMs : Math.max(scanMs, tookMs * (1 / MAX_SHARE - 1));
      const pauseMs = Math.min(wantedMs, LONGEST_PAUSE_MS);
      this.#noteDue(pauseMs);
      await pauseOrAbort(pauseMs, signal);
    }
  }

  #noteDue(inMs: number): void {
    this.dueMs = monotonicMs() + inMs;
  }

  /**
   * Brings a folder up to date, and adds the due steps. `undefined` if the entry is finished or not ready. Takes the
   * entry's lock only to change something. If another process holds it, nothing is due here.
   */
  async #visit(
    found: FoundEntry,
    byMs: number | undefined,
  ): Promise<{ readonly item: OutboxDelivery; readonly due: number } | undefined> {
    const { outbox, clock } = this.#tools;
    const { key } = found;
    const stored = await outbox.peek(found);
    const before = stored && (await readOutboxDelivery(this.#tools, key, stored));
    if (before === undefined) return undefined;
    // The first scan also reads the manifests.
    const isDone = await isUpToDate(this.#tools, before, this.#summary === undefined);
    const advance = async () => ({ item: await advanceFolder(this.#tools, key) });
    const advanced = isDone ? { item: before } : await outbox.change(key, advance);
    if (advanced === undefined) return { item: before, due: 0 };
    const { item } = advanced;
    if (item === undefined) return undefined;
    const following = followingOf(this.#tools, item.delivery);
    const agoMs = byMs === undefined ? 0 : monotonicMs() - byMs;
    const steps = dueSteps(key, item.entry, following, clock.now(), agoMs);
    for (const step of steps) this.#steps.add(key, step);
    return { item, due: steps.length };
  }
}
