/**
 * Limits the requests for transfers that are in flight at a service, and adapts the limit. It grows while requests wait and
 * more of them at once are answered faster. It shrinks when the service refuses requests, answers none in time, or answers
 * more slowly than usual.
 */
import { Semaphore } from "../base/concurrency.ts";
import { monotonicMs, setTimeout } from "../base/timers.ts";

const FIRST_LIMIT = 6;
/**
 * Growth is `first` until the limit shrinks, or a larger limit proves useless, for the first time. A round ends after
 * `answersPerPlace` answers for each request that may be in flight.
 */
const GROWTH = {
  first: { factor: 2, answersPerPlace: 1 },
  later: { factor: 1.5, answersPerPlace: 2 },
};
const SHRINKING = 0.5;
/** A larger limit that does not speed answers up by this factor is useless. */
const MIN_GAIN = 1.05;
/** Rounds without growth after a useless one. */
const REST_ROUNDS = 10;
/** An answer is slow if it takes twice as long as usual, and this much longer. */
const SLOW_EXTRA_MS = 100;
/** The usual time of an answer rises by this factor with each slower one. */
const USUAL_RISE = 1.02;
/** For this time the limit stays below a number of requests that the service refused. */
const REMEMBER_MS = 60_000;

/** A place for one request. */
export type Place = Awaited<ReturnType<Gate["enter"]>>;

/** What is measured under one limit, before it is judged. */
interface Round {
  readonly sinceMs: number;
  answers: number;
  slow: number;
  bytes: number;
  /** A request had to wait. */
  isFull: boolean;
}

/** Answers and bytes per second. */
type Speed = readonly [answers: number, bytes: number];

export class Gate {
  readonly #maximum: () => number;
  readonly #places = new Semaphore(() => (this.#isHeld() ? 0 : this.limit));
  /** The usual time until the head of an answer, by kind of request. */
  readonly #usualMs = new Map<string, number>();
  #limit = FIRST_LIMIT;
  #round: Round = newRound();
  /** The limit and the speed before the last growth, which this round judges. */
  #before: { readonly limit: number; readonly speed: Speed } | undefined;
  #restRounds = 0;
  #growth: keyof typeof GROWTH = "first";
  #shrunkMs = Number.NEGATIVE_INFINITY;
  #refused: { readonly limit: number; readonly untilMs: number } | undefined;
  #heldUntilMs = Number.NEGATIVE_INFINITY;

  /** `maximum`: as configured now. */
  constructor(maximum: () => number) {
    this.#maximum = maximum;
  }

  /** Requests at once. */
  get limit(): number {
    return Math.max(1, Math.floor(Math.min(this.#limit, this.#maximum())));
  }

  /**
   * Places are shared fairly between transfers. `kind`: requests whose answers take about as long. Rejects with the
   * signal's reason.
   */
  async enter(transfer: string, kind: string, signal: AbortSignal) {
    await this.#places.take(transfer, signal);
    let sentMs = monotonicMs();
    let isInside = true;
    return {
      /** The first byte of the request is sent. */
      onSending: () => {
        sentMs = monotonicMs();
      },
      /** The head of a success has arrived. */
      onAnswer: () => this.#note(kind, monotonicMs() - sentMs),
      /** The service refused the request because of too many others, or did not answer in time. */
      onOverload: () => this.#overload(sentMs),
      /** Whether other requests are in flight. */
      hasOthers: () => this.#places.taken > 1,
      /** May be called twice. `bytes`: of the answer. */
      leave: (bytes = 0) => {
        if (!isInside) return;
        isInside = false;
        this.#round.isFull ||= this.#places.hasWaiters;
        this.#round.bytes += bytes;
        this.#places.giveBack(transfer);
      },
    };
  }

  /** No request enters for this time. */
  hold(ms: number): void {
    this.#heldUntilMs = Math.max(this.#heldUntilMs, monotonicMs() + ms);
    setTimeout(() => this.#places.admit(), ms + 1).unref();
  }

  #isHeld(): boolean {
    return monotonicMs() < this.#heldUntilMs;
  }

  #note(kind: string, ms: number): void {
    const usualMs = this.#usualMs.get(kind) ?? ms;
    this.#usualMs.set(kind, Math.min(ms, usualMs * USUAL_RISE));
    const round = this.#round;
    round.answers++;
    if (ms > 2 * usualMs + SLOW_EXTRA_MS) round.slow++;
    if (round.answers >= this.limit * GROWTH[this.#growth].answersPerPlace) this.#endRound(round);
  }

  #endRound({ sinceMs, answers, slow, bytes, isFull }: Round): void {
    const nowMs = monotonicMs();
    const seconds = Math.max(1, nowMs - sinceMs) / 1_000;
    const speed: Speed = [answers / seconds, bytes / seconds];
    const before = this.#before;
    this.#before = undefined;
    this.#round = newRound();
    const isUseless = before !== undefined && isFull && !isFaster(speed, before.speed);
    if (slow > answers / 2) this.#shrink(this.limit);
    else if (isUseless) {
      this.#limit = before.limit;
      this.#growth = "later";
      this.#restRounds = REST_ROUNDS;
    } else if (this.#restRounds > 0) this.#restRounds--;
    else if (isFull) this.#grow(speed, nowMs);
    this.#places.admit();
  }

  #grow(speed: Speed, nowMs: number): void {
    const { limit } = this;
    const refused = this.#refused;
    const isRemembered = refused !== undefined && nowMs < refused.untilMs;
    const highest = isRemembered ? refused.limit - 1 : Number.POSITIVE_INFINITY;
    const next = Math.max(limit + 1, limit * GROWTH[this.#growth].factor);
    this.#limit = Math.max(limit, Math.min(next, this.#maximum(), highest));
    if (this.limit > limit) this.#before = { limit, speed };
  }

  /** Refusals of requests that were sent before the limit shrank say nothing about the smaller limit. */
  #overload(sentMs: number): void {
    if (sentMs <= this.#shrunkMs) return;
    const nowMs = monotonicMs();
    const limit = Math.min(this.limit, this.#places.taken);
    this.#refused = { limit, untilMs: nowMs + REMEMBER_MS };
    this.#shrink(limit);
    this.#shrunkMs = nowMs;
    this.#before = undefined;
    this.#round = newRound();
  }

  /** `limit`: the number of requests that was too large. */
  #shrink(limit: number): void {
    this.#limit = Math.max(1, limit * SHRINKING);
    this.#growth = "later";
  }
}

function newRound(): Round {
  return { sinceMs: monotonicMs(), answers: 0, slow: 0, bytes: 0, isFull: false };
}

function isFaster(now: Speed, before: Speed): boolean {
  return now.some((speed, at) => speed >= (before[at] ?? 0) * MIN_GAIN);
}
