/**
 * Compares promises with what has happened, every few seconds. It knows nothing of services, disks and queues: whatever
 * fails to happen in time is a trouble.
 */
import type { Clock } from "../base/clock.ts";
import { clearInterval, monotonicMs, setInterval, type Timer } from "../base/timers.ts";
import type { Emit } from "../model/events.ts";
import { type Broken, nameOfKind, type Promised, type PromiseKind, WITHIN_MS } from "../model/promise.ts";

const CHECK_EVERY_MS = 10_000;

export interface PromiseSource {
  readonly kind: PromiseKind;
  /** A trouble in the status says why none of its promises is kept now. */
  isExplained?(): boolean;
  /** All that is promised now. A source that fails or does not answer for a minute breaks a promise itself. */
  read(): Iterable<Promised> | Promise<Iterable<Promised>>;
}

export class Watcher {
  readonly #clock: Clock;
  readonly #emit: Emit;
  readonly #sources: readonly PromiseSource[];
  /** The last answer of each source, and when it came. */
  readonly #answers = new Map<
    PromiseSource,
    { readonly promised: readonly Promised[]; readonly atMs: number }
  >();
  readonly #asked = new Set<PromiseSource>();
  /** Until when something else explained why a promise was not kept. */
  readonly #explainedMs = new Map<string, number>();
  #broken: readonly Broken[] = [];
  /** When a check itself came late: everything else may be late too. */
  #lateMs = 0;
  #checked: { readonly atMs: number; readonly monotonicMs: number };
  #timer: Timer | undefined;

  constructor(clock: Clock, emit: Emit, sources: readonly PromiseSource[]) {
    this.#clock = clock;
    this.#emit = emit;
    this.#sources = sources;
    this.#checked = { atMs: clock.now(), monotonicMs: monotonicMs() };
    for (const source of sources) this.#answers.set(source, { promised: [], atMs: clock.now() });
  }

  start(): void {
    this.#timer = setInterval(() => this.check(), CHECK_EVERY_MS);
  }

  /** What is late now is late no longer as far as this watcher knows: the next one begins anew. */
  close(): void {
    clearInterval(this.#timer);
    this.#report([]);
  }

  /** Emits an event if other promises are broken than before. */
  check(): void {
    const nowMs = this.#clock.now();
    const late = this.#lateness(nowMs);
    if (late.length > 0) this.#lateMs = nowMs;
    for (const source of this.#sources) void this.#ask(source);
    const promised = [...this.#sources.flatMap((source) => this.#promisedBy(source)), ...late];
    const broken = promised.flatMap((each) => this.#judge(each, nowMs));
    const keys = new Set(promised.map(keyOf));
    for (const key of this.#explainedMs.keys()) if (!keys.has(key)) this.#explainedMs.delete(key);
    this.#report(broken);
  }

  #report(broken: readonly Broken[]): void {
    const before = this.#broken;
    this.#broken = broken;
    const began = missingIn(before, broken);
    const kept = missingIn(broken, before);
    if (stateOf(before) !== stateOf(broken)) this.#emit({ type: "promises-changed", broken, began, kept });
  }

  async #ask(source: PromiseSource): Promise<void> {
    if (this.#asked.has(source)) return;
    this.#asked.add(source);
    try {
      const promised = [...(await source.read())];
      this.#answers.set(source, { promised, atMs: this.#clock.now() });
    } catch {
      // The age of its last answer says that it fails.
    } finally {
      this.#asked.delete(source);
    }
  }

  #promisedBy(source: PromiseSource): Promised[] {
    const { promised = [], atMs = 0 } = this.#answers.get(source) ?? {};
    const { kind } = source;
    const text = "It cannot be found out whether work waits.";
    const answer: Promised = {
      kind,
      subject: nameOfKind(kind),
      text,
      dueMs: atMs + WITHIN_MS,
      graceMs: WITHIN_MS,
    };
    const isExplained = source.isExplained?.() ?? false;
    return [...promised, answer].map((each) => ({ ...each, isExplained: each.isExplained || isExplained }));
  }

  #judge(promised: Promised, nowMs: number): Broken[] {
    const { kind, dueMs, graceMs, isExplained = false } = promised;
    const key = keyOf(promised);
    if (isExplained) this.#explainedMs.set(key, nowMs);
    const explainedMs = Math.max(this.#explainedMs.get(key) ?? 0, this.#lateMs);
    if (nowMs <= dueMs) return [];
    if (kind !== "timers" && nowMs <= explainedMs + graceMs) return [{ ...promised, isExplained: true }];
    return [{ ...promised, isExplained: false }];
  }

  /** The process's own promise: its timers run. A jump of the clock makes other promises look late in the same way. */
  #lateness(nowMs: number): Promised[] {
    const { atMs, monotonicMs: beforeMs } = this.#checked;
    const passedMs = monotonicMs() - beforeMs;
    this.#checked = { atMs: nowMs, monotonicMs: monotonicMs() };
    const lateMs = Math.max(passedMs, nowMs - atMs) - CHECK_EVERY_MS;
    if (lateMs < WITHIN_MS) return [];
    const text =
      passedMs - CHECK_EVERY_MS < WITHIN_MS
        ? "The machine slept, or its clock was set forward."
        : `The process stood still for ${Math.round(passedMs / 1000)} seconds.`;
    return [{ kind: "timers", subject: "process", text, dueMs: nowMs - lateMs, graceMs: 0 }];
  }
}

function keyOf({ kind, subject, mailbox = "" }: Promised): string {
  return JSON.stringify([kind, subject, mailbox]);
}

function stateOf(broken: readonly Broken[]): string {
  return JSON.stringify(broken.map((each) => [keyOf(each), each.isExplained]).toSorted());
}

function missingIn(known: readonly Broken[], all: readonly Broken[]): Broken[] {
  const keys = new Set(known.filter((it) => !it.isExplained).map(keyOf));
  return all.filter((it) => !it.isExplained && !keys.has(keyOf(it)));
}
