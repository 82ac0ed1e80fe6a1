/**
 * The durable record of one transfer for one mailbox, and the states it passes through.
 *
 * `discovered` → `collecting` → `delivering` → `delivered` → `collected` is the way of a transfer that goes well.
 * `waiting` parks one until a person, a lock, the disk or time changes something. `quarantined` holds one that we
 * will not vouch for until a person decides. `gone` ends one that the service took away before it was delivered.
 */

export const RECEIPT_VERSION = 1;

export type ReceiptState =
  | "discovered"
  | "collecting"
  | "waiting"
  | "delivering"
  | "delivered"
  | "collected"
  | "quarantined"
  | "gone";

/** Which state may follow which: total, so that no case is forgotten. */
export const TRANSITIONS: Readonly<Record<ReceiptState, readonly ReceiptState[]>> = {
  discovered: ["collecting", "waiting", "quarantined", "gone"],
  collecting: ["collecting", "waiting", "delivering", "quarantined", "gone"],
  waiting: ["waiting", "collecting", "delivering", "quarantined", "gone"],
  // Nothing else: whether the folder appeared is decided by looking for the staged one, and only in this state.
  delivering: ["delivering", "delivered"],
  // Back to the start: only on an operator's word.
  delivered: ["collected", "discovered"],
  collected: ["discovered"],
  quarantined: ["discovered", "gone"],
  gone: ["discovered"],
};

/** States in which nothing more is to be done by itself. */
const FINAL: ReadonlySet<ReceiptState> = new Set(["delivered", "collected", "quarantined", "gone"]);

export type Verified = "all" | "none";

export interface Receipt {
  readonly version: typeof RECEIPT_VERSION;
  /** The mailbox's name. */
  readonly mailbox: string;
  readonly trackingId: string;
  readonly transferId: string;
  readonly sender: string;
  readonly state: ReceiptState;
  /** Why it waits (`password`, `locked`, `disk`, `retry`), was quarantined (a fault's code) or is gone (the service's state). */
  readonly reason: string | undefined;
  /** For people: what exactly happened and what to do. */
  readonly message: string | undefined;
  /** It waits for a password, and none would be sent: `passwordAttempts` are spent. */
  readonly noAttemptsLeft?: boolean | undefined;
  /** Until when it waits, where that is known; ISO 8601, as all times here. */
  readonly until: string | undefined;
  readonly expires: string | undefined;
  /** The sender chose no password: the link that the service lists carries one. */
  readonly passwordInLink: boolean;
  /** Where it was or will be delivered, from the inbox's root. */
  readonly folder: string | undefined;
  /** What its manifest says: whether every file was proven by a checksum of its sender. Known from `delivering` on. */
  readonly verified?: Verified | undefined;
  /**
   * The name by which a consumer acknowledges this delivery: no file in it has it, because it was kept free when their
   * names were planned, whatever is configured since. Known from `delivering` on; missing where there is none.
   */
  readonly acknowledgement?: string | undefined;
  /** An operator vouches for it: limits and checksums do not keep it from being delivered, marked as not verified. */
  readonly released: boolean;
  /** It is gone, and an operator knows it. */
  readonly acknowledged?: boolean | undefined;
  /** Counts the claims on it: whoever holds a lower one than another has lost it. */
  readonly fence: number;
  /** How often collecting was begun. */
  readonly attempts: number;
  /** How many passwords were refused, or sent without an answer: what the budget is spent on. */
  readonly refusedPasswords: number;
  /** How many of those were sent without an answer. */
  readonly unansweredPasswords: number;
  /** Fingerprints of refused passwords, which are never sent again. */
  readonly refusedFingerprints: readonly string[];
  /** When it entered each state, last. */
  readonly at: Readonly<Partial<Record<ReceiptState, string>>>;
}

/** Why it is gone where an operator did not want it: the service may list it, and it is left alone. */
export const DISCARDED = "discarded";

export function isFinal(receipt: Receipt): boolean {
  return FINAL.has(receipt.state);
}

/** Whether nobody is to be told of it any more: it ended well, or an operator wanted or knows how it ended. */
export function isSettledForPeople({ state, reason, acknowledged }: Receipt): boolean {
  if (state === "gone") return reason === DISCARDED || acknowledged === true;
  return state === "delivered" || state === "collected";
}
