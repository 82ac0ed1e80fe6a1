/** The bandwidth limit that all downloads of the process share. */
import { type Clock, systemClock } from "../base/clock.ts";
import { Mutex } from "../base/concurrency.ts";
import { monotonicMs, pause } from "../base/timers.ts";
import { isWithin, nextChange } from "../base/timetable.ts";
import type { BandwidthRule } from "../model/mailbox.ts";

/** Unused bandwidth is saved for this time. */
const BURST_MS = 250;
/** Small, so that each download gets its next turn soon. */
const MAX_BYTES_PER_TURN = 64 * 1024;
/** Fewer wake-ups: the bandwidth saved during one pause serves several downloads. */
const SHORTEST_PAUSE_MS = 20;

/** As configured now. */
type Rules = () => readonly BandwidthRule[] | undefined;

/** The rate at an instant, and its earliest possible change. Both may be infinite. */
export function rateAt(
  rules: readonly BandwidthRule[],
  ms: number,
): { readonly bytesPerSecond: number; readonly untilMs: number } {
  const rule = rules.find(({ at }) => at === undefined || isWithin(at, ms));
  const changes = rules.map(({ at }) => (at === undefined ? undefined : nextChange(at, ms)));
  return {
    bytesPerSecond: rule?.bytesPerSecond ?? Number.POSITIVE_INFINITY,
    untilMs: Math.min(...changes.filter((change) => change !== undefined)),
  };
}

/** For all services of the process. A download that finds too little bandwidth, or others waiting, waits its turn. */
export class Bandwidth {
  readonly #rules: Rules;
  readonly #clock: Clock;
  /** The present rate, the rules that it comes from, and the time in which it applies. */
  #rate = { rules: undefined as ReturnType<Rules>, bytesPerSecond: 0, fromMs: 0, untilMs: 0 };
  /** When a line of this rate would have carried the bytes that have passed, on the monotonic clock. */
  #usedUntilMs = Number.NEGATIVE_INFINITY;
  readonly #turn = new Mutex();

  constructor(rules: Rules, clock: Clock = systemClock) {
    this.#rules = rules;
    this.#clock = clock;
  }

  /**
   * Returns how many of these bytes may pass now, at least one. The caller asks again for the rest, behind the others that
   * wait. Not a promise if no wait is necessary; rejects with the signal's reason.
   */
  take(bytes: number, signal: AbortSignal): number | Promise<number> {
    const taken = this.#turn.isInUse ? undefined : this.#tryTake(bytes);
    return taken?.bytes ?? this.#wait(bytes, signal);
  }

  async #wait(bytes: number, signal: AbortSignal): Promise<number> {
    const release = await this.#turn.lock(signal);
    try {
      for (;;) {
        signal.throwIfAborted();
        const taken = this.#tryTake(bytes);
        if (taken.bytes !== undefined) return taken.bytes;
        await pause(Math.max(taken.waitMs, SHORTEST_PAUSE_MS), signal);
      }
    } finally {
      release?.();
    }
  }

  #tryTake(bytes: number): { readonly bytes?: number; readonly waitMs: number } {
    const rate = this.#currentRate();
    if (rate === Number.POSITIVE_INFINITY) return { bytes, waitMs: 0 };
    // At most half a burst, so that a late timer wastes no bandwidth.
    const turn = Math.min(bytes, MAX_BYTES_PER_TURN, Math.ceil((rate * BURST_MS) / 1_000 / 2));
    const turnMs = (turn / rate) * 1_000;
    const nowMs = monotonicMs();
    const savedSinceMs = nowMs - Math.max(BURST_MS, turnMs);
    const usedUntilMs = Math.max(this.#usedUntilMs, savedSinceMs) + turnMs;
    if (usedUntilMs > nowMs) return { waitMs: Math.ceil(usedUntilMs - nowMs) };
    this.#usedUntilMs = usedUntilMs;
    return { bytes: turn, waitMs: 0 };
  }

  #currentRate(): number {
    const nowMs = this.#clock.now();
    const rules = this.#rules();
    const { fromMs, untilMs } = this.#rate;
    if (rules !== this.#rate.rules || nowMs < fromMs || nowMs >= untilMs) {
      this.#rate = { ...rateAt(rules ?? [], nowMs), rules, fromMs: nowMs };
    }
    return this.#rate.bytesPerSecond;
  }
}
