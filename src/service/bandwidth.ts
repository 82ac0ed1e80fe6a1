/** How fast all downloads of the process may be together. */
import { type Clock, systemClock } from "../base/clock.ts";
import { isWithin, nextChange } from "../base/timetable.ts";
import type { BandwidthRule } from "../model/mailbox.ts";

export interface Bandwidth {
  /**
   * How many of these bytes may pass now: at least one, at most all. Whoever asks for the rest stands in line again,
   * behind the others. Answers at once where nothing is in the way; a wait ends with the signal, by its reason.
   */
  take(bytes: number, signal: AbortSignal): number | Promise<number>;
}

/** What may pass at once after a pause. */
const BURST_MS = 250;
/** A turn is at most so large, so that turns come round quickly. */
const MOST_BYTES_PER_TURN = 64 * 1024;
/** What has come together in this time goes on together: fewer wake-ups, and well within a burst. */
const SHORTEST_PAUSE_MS = 20;

/** One for all services of the process. Keeps no timer but while somebody waits. */
export function createBandwidth(rules: readonly BandwidthRule[], clock: Clock = systemClock): Bandwidth {
  return new SharedBandwidth(rules, clock);
}

/** The rate at an instant, and until when it counts at least. Both may be infinite. */
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
 * A bucket of tokens, one per byte, that fills at the rate and holds a burst. Whoever finds too few, or others in line,
 * waits its turn. The clock may jump: backwards nothing is gained, forwards no more than a burst.
 */
class SharedBandwidth implements Bandwidth {
  readonly #rules: readonly BandwidthRule[];
  readonly #clock: Clock;
  /** In the order in which they came. */
  readonly #line = new Set<Waiter>();
  #rate: number = Number.POSITIVE_INFINITY;
  /** From when until when the rate counts. */
  #counts = { fromMs: 0, untilMs: 0 };
  #tokens: number = Number.POSITIVE_INFINITY;
  #filledMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(rules: readonly BandwidthRule[], clock: Clock) {
    this.#rules = rules;
    this.#clock = clock;
  }

  take(bytes: number, signal: AbortSignal): number | Promise<number> {
    this.#fill();
    const turn = this.#turnOf(bytes);
    if (this.#line.size > 0 || this.#tokens < turn) return this.#wait(bytes, signal);
    this.#tokens -= turn;
    return turn;
  }

  #wait(bytes: number, signal: AbortSignal): Promise<number> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return void reject(signal.reason);
      const leave = () => {
        this.#line.delete(waiter);
        if (this.#line.size === 0) this.#sleep(undefined);
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
      this.#line.add(waiter);
      if (this.#timer === undefined) this.#serve();
    });
  }

  /** Lets pass whom there is enough for, in order, and sleeps until there is enough for the next one. */
  #serve(): void {
    this.#sleep(undefined);
    this.#fill();
    for (const waiter of this.#line) {
      const turn = this.#turnOf(waiter.bytes);
      if (this.#tokens < turn) {
        this.#sleep(((turn - this.#tokens) / this.#rate) * 1_000);
        return;
      }
      this.#tokens -= turn;
      this.#line.delete(waiter);
      waiter.pass(turn);
    }
  }

  #sleep(pauseMs: number | undefined): void {
    clearTimeout(this.#timer);
    this.#timer =
      pauseMs === undefined
        ? undefined
        : setTimeout(() => this.#serve(), Math.max(Math.ceil(pauseMs), SHORTEST_PAUSE_MS));
  }

  #fill(): void {
    const nowMs = this.#clock.now();
    const passedMs = Math.max(0, nowMs - this.#filledMs);
    this.#filledMs = nowMs;
    if (this.#rate !== Number.POSITIVE_INFINITY) this.#tokens += (this.#rate * passedMs) / 1_000;
    if (nowMs < this.#counts.fromMs || nowMs >= this.#counts.untilMs) {
      const { bytesPerSecond, untilMs } = rateAt(this.#rules, nowMs);
      if (bytesPerSecond === Number.POSITIVE_INFINITY) this.#tokens = bytesPerSecond;
      this.#rate = bytesPerSecond;
      this.#counts = { fromMs: nowMs, untilMs };
    }
    this.#tokens = Math.min(this.#tokens, this.#burst);
  }

  get #burst(): number {
    return Math.max(1, (this.#rate * BURST_MS) / 1_000);
  }

  /** At most half of what the bucket holds: what comes in while a timer is late is not lost. */
  #turnOf(bytes: number): number {
    if (this.#rate === Number.POSITIVE_INFINITY) return bytes;
    return Math.min(bytes, MOST_BYTES_PER_TURN, Math.ceil(this.#burst / 2));
  }
}
