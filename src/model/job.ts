/** What the engines run: polls of mailboxes, and the collecting of transfers. Jobs carry ids only, never a secret. */

export interface CollectJob {
  /** Unique to the transfer and mailbox: a second job of the same key is the same job. */
  readonly key: string;
  readonly mailbox: string;
  readonly trackingId: string;
  /** When the transfer expires, in milliseconds; what expires first goes first. */
  readonly expiresMs: number;
}

export interface PollSchedule {
  readonly mailbox: string;
  readonly everyMs: number;
}

/** What becomes of a job whose turn is over. */
export type Next = { readonly kind: "done" } | { readonly kind: "again"; readonly afterMs: number };

export const DONE: Next = { kind: "done" };
