/** Password attempts of a transfer: they are counted before they are sent, over all mailboxes and processes. */

import { Secret } from "../base/secret.ts";

/** Stands for a request without a password. */
export const NO_PASSWORD = new Secret("");

/** Whose attempts: a service counts wrong passwords over all recipients of a transfer. */
export interface AttemptsOf {
  /** Of the service. */
  readonly origin: string;
  readonly trackingId: string;
}

export interface SpentAttempts {
  /** Refused, or of an unknown answer. */
  readonly spent: number;
  /** How many of them had an unknown answer. */
  readonly unanswered: number;
  /** Of refused passwords. */
  readonly fingerprints: readonly string[];
  /** Other mailboxes made some of them. */
  readonly isShared: boolean;
  /** How many there may be: the budget, and what an operator has granted beyond it. */
  readonly allowed: number;
}

/** Who makes an attempt. */
export interface AttemptOwner {
  /** The ledger's name of the transfer. */
  readonly name: string;
  readonly round: number;
  /** ISO 8601. */
  readonly at: string;
}

/** A slot for one attempt, taken before it is sent. `refused` or `giveBack` is called after an answer. */
export interface TakenSlot {
  /** What was spent beside this one. `pending`: when the slots before it were taken that have no answer, yet or for ever. */
  others(): Promise<SpentAttempts & { readonly pending: readonly string[] }>;
  /** The password was refused: the slot stays, with its fingerprint. */
  refused(fingerprint: string): Promise<void>;
  /** The attempt cost nothing. */
  giveBack(): Promise<void>;
}

export interface AttemptSlots {
  /** `name`: of the transfer for the mailbox that asks. */
  spent(of: AttemptsOf, name: string, budget: number): Promise<SpentAttempts>;
  /** Allows so many attempts beyond the budget. When it returns, a power cut cannot undo it. May be called twice. */
  grant(of: AttemptsOf, owner: AttemptOwner, attempts: number): Promise<void>;
  /** When it returns, a power cut cannot take the slot away. `undefined` where the budget is spent. */
  take(of: AttemptsOf, owner: AttemptOwner, budget: number): Promise<TakenSlot | undefined>;
}
