/** Trouble that meets many at once: told when it begins, and when the last of them is past it; never in between. */
import type { Clock } from "./clock.ts";
import type { Fault } from "./faults.ts";

export interface OutageWatch {
  began(fault: Fault): void;
  /** How long it lasted, and how many it met. */
  ended(lastedMs: number, met: number): void;
}

export class Outage {
  readonly #clock: Clock;
  readonly #watch: OutageWatch;
  readonly #met = new Set<string>();
  /** Those of `#met` that are not past it. */
  readonly #inIt = new Set<string>();
  #sinceMs = 0;

  constructor(clock: Clock, watch: OutageWatch) {
    this.#clock = clock;
    this.#watch = watch;
  }

  meets(who: string, fault: Fault): void {
    const begins = this.#inIt.size === 0;
    this.#met.add(who);
    this.#inIt.add(who);
    if (!begins) return;
    this.#sinceMs = this.#clock.now();
    this.#watch.began(fault);
  }

  /** Those who are in it now. */
  those(): readonly string[] {
    return [...this.#inIt];
  }

  isPast(who: string): void {
    if (!this.#inIt.delete(who) || this.#inIt.size > 0) return;
    const met = this.#met.size;
    this.#met.clear();
    this.#watch.ended(this.#clock.now() - this.#sinceMs, met);
  }
}
