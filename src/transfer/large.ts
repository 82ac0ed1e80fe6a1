/**
 * Lists of many files take memory for as long as their transfer is worked on, and a service can list any number. So one
 * transfer of each service has a long list at a time; the next one waits.
 */
import { Fault } from "../base/faults.ts";

/** Shorter lists take a few mebibytes. */
export const MANY_FILES = 5_000;

export class LargeTransfers {
  /** By service: the transfer that has a long list. */
  readonly #holders = new Map<string, string>();

  /** Throws `ONE_AT_A_TIME`. Has to be given back. */
  take(service: string, key: string): void {
    const holder = this.#holders.get(service);
    if (holder !== undefined && holder !== key) throw new Fault("ONE_AT_A_TIME");
    this.#holders.set(service, key);
  }

  giveBack(service: string, key: string): void {
    if (this.#holders.get(service) === key) this.#holders.delete(service);
  }
}
