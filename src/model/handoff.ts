/** What happens to a transfer after its delivery: who is told of it, and whether somebody collects it. */

/** What may be done after a delivery, each on its own. */
export const STEPS = ["command", "webhook"] as const;
export type HandoffStep = (typeof STEPS)[number];

/** A transfer that was delivered, as it is told of. */
export interface Delivered {
  readonly mailbox: string;
  readonly trackingId: string;
  readonly sender: string;
  /** From the inbox's root. */
  readonly folder: string;
  /** ISO 8601. */
  readonly deliveredAt: string;
}

/** One with which something is wrong. */
export interface HandoffTrouble extends Delivered {
  readonly failed: readonly FailedStep[];
  /** Nobody has collected it for longer than was expected. */
  readonly isOverdue: boolean;
}

export interface FailedStep {
  readonly step: HandoffStep;
  /** For people. */
  readonly message: string;
  /** It is tried again by itself. */
  readonly willRetry: boolean;
}

/** What is known of all that this process hands over. */
export interface HandoffSummary {
  /** How many are there that nobody has collected. */
  readonly uncollected: number;
  /** When the first of them was delivered; missing where there is none. */
  readonly oldestMs: number | undefined;
  /** With how many something is wrong. */
  readonly troubled: number;
  /** Those of them that a person would look at: first what failed. */
  readonly troubles: readonly HandoffTrouble[];
}
