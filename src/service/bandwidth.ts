/** The bandwidth limit that all downloads of the process share. */
import { type Clock, systemClock } from "../base/clock.ts";
import { isWithin, nextChange } from "../base/timetable.ts";
import type { BandwidthRule } from "../model/mailbox.ts";

/** The bucket holds the bytes that may pass in this time. */
const BURST_MS = 250;
/** Small, so that each download gets its next turn soon. */
const MAX_BYTES_PER_TURN = 64 * 1024;
/** Downloads that become ready within this time go on together: fewer wake-ups, and well within a burst. */
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

interface Waiter {
  readonly bytes: number;
  pass(bytes: number): void;
}

/**
 * A token bucket for all services of the process: one token per byte, filled at the rate, up to a burst. A download that
 * finds too few tokens, or others waiting, waits its turn. A clock that jumps backwards adds no tokens, one that jumps
 * forwards at most a burst. Has a timer only while a download waits.
 */
export class Bandwidth {
  readonly #rules: Rules;
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #waiters = new Set<Waiter>();
  #rate: number = Number.POSITIVE_INFINITY;
  /** The rules of the rate, and the time in which it applies. */
  #valid = { rules: undefined as ReturnType<Rules>, fromMs: 0, untilMs: 0 };
  #tokens: number = Number.POSITIVE_INFINITY;
  #filledMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(rules: Rules, clock: Clock = systemClock) {
    this.#rules = rules;
    this.#clock = clock;
  }

  /**
   * Returns how many of these bytes may pass now, at least one. The caller asks again for the rest, behind the others that
   * wait. Not a promise if no wait is necessary; rejects with the signal's reason.
   */
  take(bytes: number, signal: AbortSignal): number | Promise<number> {
    this.#fill();
    const turn = this.#turnOf(bytes);
    if (this.#waiters.size > 0 || this.#tokens < turn) return this.#wait(bytes, signal);
    this.#tokens -= turn;
    return turn;
  }

  #wait(bytes: number, signal: AbortSignal): Promise<number> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return void reject(signal.reason);
      const leave = () => {
        this.#waiters.delete(waiter);
        if (this.#waiters.size === 0) this.#sleep(undefined);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        bytes,
        pass(granted) {
          signal.removeEventListener("abort", leave);
          resolve(granted);
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiters.add(waiter);
      if (this.#timer === undefined) this.#serve();
    });
  }

  /** Serves waiters in order while there are enough tokens, then sleeps until there are enough for the next. */
  #serve(): void {
    this.#sleep(undefined);
    this.#fill();
    for (const waiter of this.#waiters) {
      const turn = this.#turnOf(waiter.bytes);
      if (this.#tokens < turn) {
        this.#sleep(((turn - this.#tokens) / this.#rate) * 1_000);
        return;
      }
      this.#tokens -= turn;
      this.#waiters.delete(waiter);
      waiter.pass(turn);
    }
  }

  #sleep(pauseMs: number | undefined): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (pauseMs === undefined) return;
    this.#timer = setTimeout(() => this.#serve(), Math.max(Math.ceil(pauseMs), SHORTEST_PAUSE_MS));
  }

  #fill(): void {
    const nowMs = this.#clock.now();
    const passedMs = Math.max(0, nowMs - this.#filledMs);
    this.#filledMs = nowMs;
    if (this.#rate !== Number.POSITIVE_INFINITY) this.#tokens += (this.#rate * passedMs) / 1_000;
    const rules = this.#rules();
    const isDue = nowMs < this.#valid.fromMs || nowMs >= this.#valid.untilMs;
    if (isDue || rules !== this.#valid.rules) {
      const { bytesPerSecond, untilMs } = rateAt(rules ?? [], nowMs);
      if (bytesPerSecond === Number.POSITIVE_INFINITY) this.#tokens = bytesPerSecond;
      this.#rate = bytesPerSecond;
      this.#valid = { rules, fromMs: nowMs, untilMs };
    }
    this.#tokens = Math.min(this.#tokens, this.#burst);
  }

  get #burst(): number {
    return Math.max(1, (this.#rate * BURST_MS) / 1_000);
  }

  /** At most half the bucket, so that tokens added while a timer is late still fit in. */
  #turnOf(bytes: number): number {
    if (this.#rate === Number.POSITIVE_INFINITY) return bytes;
    return Math.min(bytes, MAX_BYTES_PER_TURN, Math.ceil(this.#burst / 2));
  }
}
