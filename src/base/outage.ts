/**
 * A failure that affects many keys at once: reported when the first is affected and when the last has recovered. The fault of
 * the key that is affected longest is shown, and reported again if its code changes.
 */
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
  readonly #affected = new Map<string, Fault>();
  #shown: Fault | undefined;
  #sinceMs = 0;

  constructor(clock: Clock, events: OutageEvents) {
    this.#clock = clock;
    this.#events = events;
  }

  add(key: string, fault: Fault): void {
    if (this.#affected.size === 0) this.#sinceMs = this.#clock.now();
    this.#affected.set(key, fault);
    this.#show();
  }

  /** The keys that are affected now. */
  keys(): readonly string[] {
    return [...this.#affected.keys()];
  }

  /** The key has recovered. May be called for any key. */
  clear(key: string): void {
    if (this.#affected.delete(key)) this.#show();
  }

  /** Forgets all keys, because they are no longer watched. */
  end(): void {
    this.#affected.clear();
    if (this.#shown !== undefined) this.#show();
  }

  #show(): void {
    const [first] = this.#affected.values();
    const before = this.#shown;
    this.#shown = first;
    if (first === undefined) this.#events.ended(this.#clock.now() - this.#sinceMs);
    else if (first.code !== before?.code) this.#events.began(first);
    else if (first.message !== before.message) this.#events.changed?.(first);
  }
}
