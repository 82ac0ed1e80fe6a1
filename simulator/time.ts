/** A clock that tests can advance. */
import type { Clock } from "../src/base/clock.ts";

export class MovableClock implements Clock {
  readonly #clock: Clock;
  #aheadMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now() + this.#aheadMs;
  }

  advance(seconds: number): void {
    this.#aheadMs += seconds * 1000;
  }
}
