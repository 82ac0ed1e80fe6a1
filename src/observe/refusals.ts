/** Passwords that were refused while a transfer was in hand. What its receipt counts from before is not counted again. */
import type { Receipt } from "../model/receipt.ts";

/** Another process may finish a transfer, and nobody hears of it: more than so many are not remembered. */
const MOST_KNOWN = 1_000;

export class Refusals {
  /** How many there were when collecting was begun. */
  readonly #before = new Map<string, number>();

  /** How many were refused since this transfer was heard of last. */
  since(receipt: Receipt): number {
    const { state, refusedPasswords } = receipt;
    const key = `${receipt.mailbox}\0${receipt.trackingId}`;
    const before = this.#before.get(key) ?? refusedPasswords;
    this.#before.delete(key);
    if (state === "collecting") this.#before.set(key, refusedPasswords);
    const [oldest] = this.#before.keys();
    if (this.#before.size > MOST_KNOWN && oldest !== undefined) this.#before.delete(oldest);
    return Math.max(0, refusedPasswords - before);
  }
}
