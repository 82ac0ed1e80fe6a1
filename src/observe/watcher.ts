/**
 * Compares promises with what has happened, every few seconds. It knows nothing of services, disks and queues: whatever
 * fails to happen in time is a trouble.
 */
import type { Clock } from "../base/clock.ts";
import { machine } from "../base/machine.ts";
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

/** A source with its last answer, and when that came. */
interface AskedSource {
  readonly source: PromiseSource;
  promised: readonly Promised[];
  answeredMs: number;
  isAsked: boolean;
}

export class Watcher {
  readonly #clock: Clock;
  readonly #emit: Emit;
  readonly #sources: readonly AskedSource[];
  /** By key of a promise: the last check at which something else explained why it was not kept. */
  readonly #explainedMs = new Map<string, number>();
  #broken: readonly Broken[] = [];
  /** When a check itself last came late: everything else may be late too. */
  #lateMs = Number.NEGATIVE_INFINITY;
  /** The last check, also by the machine's uptime, which includes its sleep. */
  #checked: { readonly atMs: number; readonly uptimeMs: number };
  #timer: Timer | undefined;

  constructor(clock: Clock, emit: Emit, sources: readonly PromiseSource[]) {
    this.#clock = clock;
    this.#emit = emit;
    const atMs = monotonicMs();
    this.#sources = sources.map((source) => ({ source, promised: [], answeredMs: atMs, isAsked: false }));
    this.#checked = { atMs, uptimeMs: machine().uptimeMs() };
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
    const nowMs = monotonicMs();
    const late = this.#lateness(nowMs);
    if (late.length > 0) this.#lateMs = nowMs;
    for (const source of this.#sources) void this.#ask(source);
    const promised = [...this.#sources.flatMap((source) => this.#promisedBy(source)), ...late];
    const broken = promised.flatMap((each) => this.#judge(each, nowMs));
    // Mostly empty, and keys take time.
    const keys = new Set(this.#explainedMs.size === 0 ? [] : promised.map(keyOf));
    for (const key of this.#explainedMs.keys()) if (!keys.has(key)) this.#explainedMs.delete(key);
    this.#report(broken);
  }

  #report(broken: readonly Broken[]): void {
    const before = this.#broken;
    this.#broken = broken;
    if (before.length === 0 && broken.length === 0) return;
    const began = without(before, broken);
    const kept = without(broken, before);
    if (stateOf(before) !== stateOf(broken)) this.#emit({ type: "promises-changed", broken, began, kept });
  }

  async #ask(asked: AskedSource): Promise<void> {
    if (asked.isAsked) return;
    asked.isAsked = true;
    try {
      asked.promised = [...(await asked.source.read())];
      asked.answeredMs = monotonicMs();
    } catch {
      // The age of its last answer says that it fails.
    } finally {
      asked.isAsked = false;
    }
  }

  /** The promises of a source, and that it answers within a minute. */
  #promisedBy({ source, promised, answeredMs }: AskedSource): Promised[] {
    const { kind } = source;
    const text = "It cannot be found out whether work waits.";
    const dueMs = answeredMs + WITHIN_MS;
    const answer: Promised = { kind, subject: nameOfKind(kind), text, dueMs, graceMs: WITHIN_MS };
    const isExplained = source.isExplained?.() ?? false;
    const all = [...promised, answer];
    return isExplained ? all.map((each) => ({ ...each, isExplained })) : all;
  }

  /** The promise if it is broken. Until its grace has passed, the last explanation or late check still explains it. */
  #judge(promised: Promised, nowMs: number): Broken[] {
    const { kind, dueMs, graceMs } = promised;
    if (promised.isExplained) this.#explainedMs.set(keyOf(promised), nowMs);
    if (nowMs <= dueMs) return [];
    const explainedMs = Math.max(this.#explainedMs.get(keyOf(promised)) ?? this.#lateMs, this.#lateMs);
    const isExplained = kind !== "timers" && nowMs <= explainedMs + graceMs;
    return [{ ...promised, sinceMs: this.#clock.now() - nowMs + dueMs, isExplained }];
  }

  /** The process's own promise: its timers run. */
  #lateness(nowMs: number): Promised[] {
    const { atMs, uptimeMs: beforeMs } = this.#checked;
    const passedMs = nowMs - atMs;
    const uptimeMs = machine().uptimeMs();
    this.#checked = { atMs: nowMs, uptimeMs };
    const lateMs = Math.max(passedMs, uptimeMs - beforeMs) - CHECK_EVERY_MS;
    if (lateMs < WITHIN_MS) return [];
    const text =
      passedMs - CHECK_EVERY_MS < WITHIN_MS
        ? "The machine slept."
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

/** All but the known ones. Those with an explanation do not count. */
function without(known: readonly Broken[], all: readonly Broken[]): Broken[] {
  const keys = new Set(known.filter((it) => !it.isExplained).map(keyOf));
  return all.filter((it) => !it.isExplained && !keys.has(keyOf(it)));
}
