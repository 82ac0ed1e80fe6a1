/** A failure that affects many keys at once: reported when the first is affected and when the last has recovered. */
import type { Clock } from "./clock.ts";
import type { Fault } from "./faults.ts";

export interface OutageEvents {
  began(fault: Fault): void;
  /** The cause is another one now. */
  changed?(fault: Fault): void;
  ended(lastedMs: number): void;
}

export class Outage {
  readonly #clock: Clock;
  readonly #events: OutageEvents;
  readonly #affected = new Set<string>();
  #sinceMs = 0;
  /** The last reported cause. */
  #message = "";

  constructor(clock: Clock, events: OutageEvents) {
    this.#clock = clock;
    this.#events = events;
  }

  add(key: string, fault: Fault): void {
    const isFirst = this.#affected.size === 0;
    this.#affected.add(key);
    if (isFirst) {
      this.#sinceMs = this.#clock.now();
      this.#events.began(fault);
    } else if (fault.message !== this.#message) this.#events.changed?.(fault);
    this.#message = fault.message;
  }

  /** The keys that are affected now. */
  keys(): readonly string[] {
    return [...this.#affected];
  }

  /** The key has recovered. May be called for any key. */
  clear(key: string): void {
    if (!this.#affected.delete(key) || this.#affected.size > 0) return;
    this.#events.ended(this.#clock.now() - this.#sinceMs);
  }
}
