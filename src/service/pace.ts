/**
 * The pace of requests that a service answers only so often, such as those for tokens. At first some are sent at once. The first
 * refusal shows how many were answered in which time: from then on they are sent one by one, and no faster than that.
 */
import { restMs } from "../base/backoff.ts";
import { Semaphore } from "../base/concurrency.ts";
import { Fault } from "../base/faults.ts";
import { monotonicMs, pause } from "../base/timers.ts";

const AT_ONCE = 4;
/** After a refusal that names no time. Doubles with each further refusal in a row. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** Whoever would have to wait longer for an answer fails instead. */
const PATIENCE_MS = 2 * 60_000;
/** Without a refusal for so long, the pace is forgotten. */
const REMEMBER_MS = 15 * 60_000;
/** Answers with a longer pause between them say nothing about the pace. */
const LULL_MS = 10_000;

export class Pace {
  readonly #places = new Semaphore(() => (this.#gapMs > 0 ? 1 : AT_ONCE));
  /** Between two requests. */
  #gapMs = 0;
  #nextMs = 0;
  #pauseMs = FIRST_PAUSE_MS;
  /** The answers since the last refusal, or without a lull. `isOver`: there was a refusal since. */
  #answered = { count: 0, sinceMs: 0, lastMs: Number.NEGATIVE_INFINITY, isOver: true };
  #refusal: { readonly fault: Fault; readonly atMs: number } | undefined;

  /** Repeats a request that is refused with `RATE_LIMITED`. Rejects with the signal's reason. */
  async run<Value>(ask: () => Promise<Value>, signal: AbortSignal): Promise<Value> {
    const untilMs = monotonicMs() + PATIENCE_MS;
    const owner = {};
    await this.#places.take(owner, signal);
    try {
      for (;;) {
        await this.#takeTurn(untilMs, signal);
        const sentMs = monotonicMs();
        try {
          const value = await ask();
          this.#noteAnswer(sentMs);
          return value;
        } catch (error) {
          if (!(error instanceof Fault) || error.code !== "RATE_LIMITED") throw error;
          this.#noteRefusal(error, sentMs);
        }
      }
    } finally {
      this.#places.giveBack(owner);
    }
  }

  async #takeTurn(untilMs: number, signal: AbortSignal): Promise<void> {
    for (let nowMs = monotonicMs(); ; nowMs = monotonicMs()) {
      if (this.#refusal !== undefined && nowMs - this.#refusal.atMs > REMEMBER_MS) this.#gapMs = 0;
      if (nowMs >= this.#nextMs) {
        this.#nextMs = nowMs + this.#gapMs;
        return;
      }
      const { answeredBy } = this.#refusal?.fault ?? {};
      // Without the time that was asked for: the rest of the service goes on.
      if (this.#nextMs > untilMs)
        throw new Fault("RATE_LIMITED", { detail: "verification tokens", answeredBy, cause: this.#refusal });
      await pause(this.#nextMs - nowMs, signal);
    }
  }

  #noteAnswer(sentMs: number): void {
    const { count, sinceMs, isOver } = this.#answered;
    const isNew = isOver || this.#isLull(sentMs);
    const since = isNew ? { count: 1, sinceMs: sentMs } : { count: count + 1, sinceMs };
    this.#answered = { ...since, lastMs: monotonicMs(), isOver: false };
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  /** A request that was sent before the last refusal says nothing new. */
  #noteRefusal(fault: Fault, sentMs: number): void {
    const nowMs = monotonicMs();
    if (sentMs <= (this.#refusal?.atMs ?? Number.NEGATIVE_INFINITY)) return;
    const pauseMs = Math.max(this.#pauseMs, restMs(fault));
    const { count, sinceMs, isOver } = this.#answered;
    const isNothingKnown = count === 0 || (!isOver && this.#isLull(sentMs));
    const gapMs = isNothingKnown ? pauseMs : (nowMs - sinceMs + pauseMs) / count;
    this.#gapMs = Math.min(Math.max(this.#gapMs, gapMs), LONGEST_PAUSE_MS);
    this.#nextMs = nowMs + pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
    this.#answered.isOver = true;
    this.#refusal = { fault, atMs: nowMs };
  }

  #isLull(sentMs: number): boolean {
    return sentMs - this.#answered.lastMs > LULL_MS + 2 * this.#gapMs;
  }
}
