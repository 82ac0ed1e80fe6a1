/** The ledger: one durable record per transfer and mailbox, and a journal of every change of state. */
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
   * Makes the receipt durable: when it returns, a power cut cannot undo it, and whoever reads sees the old or the new
   * one whole. Writes a line to the journal where the state differs from `previous`, the receipt as it was before.
   * Throws where the step is not in the table of transitions.
   */
  put(receipt: Receipt, previous: Receipt | undefined): Promise<void>;
  /** Every receipt that is not final, in no particular order. Reads only those. A damaged one is reported to `onDamaged`. */
  open(onDamaged: (path: string, reason: string) => void): AsyncIterable<Receipt>;
  /** A name, safe on every file system and unique to the key, for folders that belong to this transfer. */
  folderName(key: ReceiptKey): string;
  close(): Promise<void>;
}
