/** What follows a delivery: a command, a webhook, and the pick-up of the folder. */

/** Steps that may follow a delivery, independent of each other. */
export const STEPS = ["command", "webhook"] as const;
export type HandoffStep = (typeof STEPS)[number];

/** A delivered transfer, as events and the status describe it. */
export interface Delivered {
  readonly mailbox: string;
  readonly trackingId: string;
  readonly sender: string;
  /** From the inbox's root. */
  readonly folder: string;
  /** ISO 8601. */
  readonly deliveredAt: string;
}

/** A delivery that needs attention. */
export interface HandoffTrouble extends Delivered {
  readonly failed: readonly FailedStep[];
  /** The folder was not picked up within the expected time. */
  readonly isOverdue: boolean;
}

export interface FailedStep {
  readonly step: HandoffStep;
  /** For people. */
  readonly message: string;
  /** Another attempt follows without an order. */
  readonly willRetry: boolean;
}

/** All deliveries of the inbox that are not handed over completely. */
export interface HandoffSummary {
  /** Delivered folders that were not picked up yet. */
  readonly waiting: number;
  /** Delivery time of the oldest of them; missing where there is none, or where entries were only counted. */
  readonly oldestMs: number | undefined;
  /** How many deliveries need attention. */
  readonly troubled: number;
  /** The first of them, failed steps before overdue folders. */
  readonly troubles: readonly HandoffTrouble[];
}
