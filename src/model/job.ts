/** What the engines run: polls of mailboxes, and the collecting of transfers. Jobs carry ids only, never a secret. */

export interface CollectJob {
  /** Unique to the transfer and mailbox: a second job of the same key is the same job. */
  readonly key: string;
  readonly mailbox: string;
  readonly trackingId: string;
  /** When the transfer expires, in milliseconds; what expires first goes first. */
  readonly expiresMs: number;
  readonly occasion: Occasion;
}

/**
 * Why there is a job: polls list the transfer; or they do not any more, and the service is to be asked what became of
 * it; or a person wants it now, by an order or a password.
 */
export type Occasion = "listed" | "vanished" | "wanted";

/** How many polls a process has under way: a service with thousands of mailboxes is not asked about all of them at once. */
export const POLLS_AT_ONCE = 16;

export interface PollSchedule {
  readonly mailbox: string;
  readonly everyMs: number;
}

/** What becomes of a job whose turn is over. */
export type Next =
  | { readonly kind: "done" }
  /** `isLimit`: the service asked for fewer requests, and others of its jobs had better wait too. */
  | { readonly kind: "again"; readonly afterMs: number; readonly isLimit?: boolean };

export const DONE: Next = { kind: "done" };
