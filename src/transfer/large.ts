/**
 * Bounds the memory for lists of files: a service can list any number, and a list stays in memory during the download.
 * So only one transfer with a long list runs per service, and the next one waits.
 */
import { Fault } from "../base/faults.ts";

/** Shorter lists take a few mebibytes. */
export const MANY_FILES = 5_000;

export class LargeTransfers {
  /** The transfer with a long list, by service. */
  readonly #holders = new Map<string, string>();

  /** Throws `ONE_AT_A_TIME` if another such transfer runs. `giveBack` must follow. */
  take(service: string, key: string): void {
    const holder = this.#holders.get(service);
    if (holder !== undefined && holder !== key) throw new Fault("ONE_AT_A_TIME");
    this.#holders.set(service, key);
  }

  giveBack(service: string, key: string): void {
    if (this.#holders.get(service) === key) this.#holders.delete(service);
  }
}
