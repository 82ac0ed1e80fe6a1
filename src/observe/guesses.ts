/** Counts wrong tokens by where they come from, so that whoever guesses is slowed down, and nobody else is. */
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";

/** More than so many in a minute are too many. */
const MOST_PER_MINUTE = 10;
const MINUTE_MS = 60_000;
const MOST_PEERS = 1_000;
/** Who tries more waits so long for each answer, unless too many wait already. */
const PAUSE_MS = 1_000;
const MOST_WAITING = 50;

export class Guesses {
  readonly #clock: Clock;
  /** When each was wrong lately: the last ones, as many as count. */
  readonly #wrongMs = new Map<string, number[]>();

  #waiting = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Another wrong one of this peer: whether there have been too many before it. */
  isTooOften(peer: string): boolean {
    const nowMs = this.#clock.now();
    const before = (this.#wrongMs.get(peer) ?? []).filter((ms) => nowMs - ms < MINUTE_MS);
    const [oldest] = this.#wrongMs.keys();
    this.#wrongMs.delete(peer);
    if (this.#wrongMs.size >= MOST_PEERS && oldest !== undefined) this.#wrongMs.delete(oldest);
    this.#wrongMs.set(peer, [...before, nowMs].slice(-MOST_PER_MINUTE));
    return before.length >= MOST_PER_MINUTE;
  }

  async slowDown(): Promise<void> {
    if (this.#waiting >= MOST_WAITING) return;
    this.#waiting++;
    await pause(PAUSE_MS);
    this.#waiting--;
  }
}
