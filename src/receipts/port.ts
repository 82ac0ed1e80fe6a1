/**
 * The ledger: one durable record per transfer and mailbox, and a journal of every change of state.
 *
 * Several may work on one inbox, and one of them may be stopped for any length of time and then go on. So whoever
 * works on a transfer claims it, which counts its `fence` up: from then on nobody with a lower one can change what
 * counts. Writing comes first and looking for a higher fence second, while a claim is made first and reads what was
 * written before second: at least one of two sees the other.
 */
import type { Receipt } from "../model/receipt.ts";

/** What identifies a receipt. Both are opaque text that a stranger may have chosen. */
export interface ReceiptKey {
  readonly mailbox: string;
  readonly trackingId: string;
}

export interface Receipts {
  /**
   * The receipt, by its key: one look-up, whatever the length of history. `undefined` where there is none.
   * Throws `RECEIPT_UNREADABLE` where there is one that is damaged or of a newer version: never guessed over.
   */
  find(key: ReceiptKey): Promise<Receipt | undefined>;
  /**
   * Receipts of this transfer, of all other mailboxes, that have passwords spent on it. Whatever was durable when this
   * was called is found. Throws `RECEIPT_UNREADABLE`.
   */
  spentOn(key: ReceiptKey): Promise<Receipt[]>;
  /**
   * The first receipt of a transfer, or its first one after it was gone, as `previous` says. Returns false where
   * somebody else was faster.
   */
  create(receipt: Receipt, previous: Receipt | undefined): Promise<boolean>;
  /**
   * Takes a transfer over from whoever held it: what `next` makes of the receipt as it is then, under a higher fence.
   * `found`: as it was just before. `undefined` where nothing is left to do. Throws `CLAIM_LOST` where somebody else has
   * claimed it since.
   */
  claim(found: Receipt, next: (current: Receipt) => Receipt): Promise<Receipt | undefined>;
  /**
   * Makes the receipt durable: when it returns, a power cut cannot undo it, and whoever reads sees the old or the new
   * one whole. Writes a line to the journal where the state differs from `previous`, the receipt as it was before.
   * Throws `CLAIM_LOST` where somebody else has claimed it, and where the step is not in the table of transitions.
   */
  put(receipt: Receipt, previous: Receipt): Promise<void>;
  /** Every receipt that is not final, in no particular order. Reads only those. A damaged one is reported to `onDamaged`. */
  open(onDamaged: (path: string, reason: string) => void): AsyncIterable<Receipt>;
  /** The folder names of all that are not final, also of those that cannot be read. */
  openNames(): Promise<string[]>;
  /** A name, safe on every file system and unique to the key, for folders that belong to this transfer. */
  folderName(key: ReceiptKey): string;
}
