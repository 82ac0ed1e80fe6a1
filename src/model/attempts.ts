/**
 * Password attempts for a transfer, by its tracking-id, counted before they are sent: across all mailboxes and processes, and
 * however the address of its service is spelled.
 */
import { Secret } from "../base/secret.ts";

/** For requests without a password. */
export const NO_PASSWORD = new Secret("");

/** A transfer that its service locked is left alone for at least a minute: an early request may prolong the lock. */
export const MIN_LOCK_MS = 60_000;

export interface SpentAttempts {
  /** Attempts with a refused password, or without a known answer. */
  readonly spent: number;
  /** Attempts without a known answer. */
  readonly unanswered: number;
  readonly fingerprints: readonly string[];
  /** Other mailboxes made some of the attempts. */
  readonly isShared: boolean;
  /** The budget plus the attempts an operator has granted. */
  readonly allowed: number;
}

/** `pending`: the times at which slots were taken, of those that have no answer yet. */
export type CountedAttempts = SpentAttempts & { readonly pending: readonly string[] };

/** The round that makes an attempt. */
export interface AttemptOwner {
  /** The ledger's name of the transfer. */
  readonly name: string;
  readonly round: number;
  /** ISO 8601. */
  readonly at: string;
}

/** A slot for one attempt, taken before it is sent. `refused` or `giveBack` is called after an answer. */
export interface TakenSlot {
  /** The other attempts. `pending`: of earlier slots only. */
  others(): Promise<CountedAttempts>;
  /** The password was refused: the slot stays, with its fingerprint. */
  refused(fingerprint: string): Promise<void>;
  /** The attempt cost nothing. */
  giveBack(): Promise<void>;
}

export interface AttemptSlots {
  /** `name`: the ledger's name of the transfer for this mailbox. */
  spent(trackingId: string, name: string, budget: number): Promise<CountedAttempts>;
  /** Allows `attempts` beyond the budget. Durable when it returns. May be called twice. */
  grant(trackingId: string, owner: AttemptOwner, attempts: number): Promise<void>;
  /** Durable when it returns. `undefined` when the budget is spent. */
  take(trackingId: string, owner: AttemptOwner, budget: number): Promise<TakenSlot | undefined>;
}
