/**
 * A failure that affects many keys at once. It is reported when the first key is affected, and when the last one has
 * recovered. The fault of the key that is affected longest is shown.
 */
import type { Clock } from "./clock.ts";
import type { Fault } from "./faults.ts";

export interface OutageEvents {
  /** Called again if the fault that is shown has another code. */
  began(fault: Fault): void;
  /** The fault that is shown has the same code, and another message. */
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
    const before = this.#shown;
    const [longest] = this.#affected.values();
    this.#shown = longest;
    if (longest === undefined) this.#events.ended(this.#clock.now() - this.#sinceMs);
    else if (longest.code !== before?.code) this.#events.began(longest);
    else if (longest.message !== before.message) this.#events.changed?.(longest);
  }
}
