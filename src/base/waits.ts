/**
 * Waits: how long one may last, by its reason, and how much is left of it. While its process lives, a wait is a duration of
 * the monotonic clock. Its end by the wall clock is stored for people, and for the next process, which waits no longer than
 * the cap: that clock may have been set meanwhile.
 */
import { type Machine, machine } from "./machine.ts";
import { monotonicMs } from "./timers.ts";

const HOUR_MS = 60 * 60_000;

export const LONGEST_MS = {
  /** A locked transfer waits for the service's own time. */
  lock: 24 * HOUR_MS,
  /** A rest that a service or a receiver asks for. */
  rest: HOUR_MS,
  /** Between two attempts, jitter included. */
  attempt: 1.25 * HOUR_MS,
} as const;

/** Forgets the entries that were set first. */
export class BoundedMap<Value> extends Map<string, Value> {
  static readonly MAX_ENTRIES = 10_000;

  override set(key: string, value: Value): this {
    this.delete(key);
    const [oldest] = this.keys();
    if (this.size >= BoundedMap.MAX_ENTRIES && oldest !== undefined) this.delete(oldest);
    return super.set(key, value);
  }
}

/** By machine, then by id of the wait: its end by both clocks. */
const known = new WeakMap<Machine, BoundedMap<{ readonly until: string; readonly endMs: number }>>();

/** Begins a wait in place of an earlier one with this id. Returns its end by the wall clock. */
export function beginWait(id: string, ms: number, nowMs: number): string {
  const until = new Date(nowMs + ms).toISOString();
  remember(id, until, ms);
  return until;
}

/**
 * What is left of a wait that was stored; not above 0 when it is over. `until`: its end by the wall clock. `longestMs`: its
 * cap, unless this process began it.
 */
export function waitLeft(id: string, until: string, longestMs: number, nowMs: number): number {
  const wait = known.get(machine())?.get(id);
  if (wait?.until === until) return wait.endMs - monotonicMs();
  const leftMs = Math.min(Date.parse(until) - nowMs, longestMs);
  remember(id, until, leftMs);
  return leftMs;
}

function remember(id: string, until: string, leftMs: number): void {
  const waits = known.get(machine()) ?? new BoundedMap();
  known.set(machine(), waits.set(id, { until, endMs: monotonicMs() + leftMs }));
}
