/** What follows a delivery: the hand-off by command and webhook, and the pick-up of the folder. */

/** The steps of a hand-off, independent of each other. */
export const STEPS = ["command", "webhook"] as const;
export type HandoffStep = (typeof STEPS)[number];

/** Who configures a step: the route or the mailbox itself, or all mailboxes have it in common. */
export const OWNERS = ["route", "mailbox", "common"] as const;

/** The owner of each step that a hand-off has. */
export type StepOwners = Readonly<Partial<Record<HandoffStep, (typeof OWNERS)[number] | undefined>>>;

/** A delivered transfer, as events and the status describe it. */
export interface Delivered {
  readonly mailbox: string;
  readonly trackingId: string;
  /** A redelivered transfer has one delivery per round. */
  readonly round: number;
  readonly sender: string;
  /** Relative to the inbox. */
  readonly folder: string;
  /** An absolute path. Missing: the common inbox. */
  readonly inbox?: string | undefined;
  /** ISO 8601. */
  readonly deliveredAt: string;
  /** What was sent, as far as it is known. */
  readonly subject?: string | undefined;
  readonly files?: number | undefined;
  readonly bytes?: number | undefined;
}

export interface HandoffTrouble extends Delivered {
  readonly failed: readonly FailedStep[];
  /** The folder was not picked up within the expected time. */
  readonly isOverdue: boolean;
  /** How its folder was changed since. */
  readonly problem?: string | undefined;
}

export interface FailedStep {
  readonly step: HandoffStep;
  readonly message: string;
  readonly output?: string | undefined;
  readonly willRetry: boolean;
}

/** All deliveries whose hand-off or pick-up is not complete, as they are now. */
export interface HandoffSummary {
  /** Number of delivered folders that were not picked up yet. */
  readonly waiting: number;
  /** Delivery time of the oldest such folder; missing without one, or when entries were only counted. */
  readonly oldestMs: number | undefined;
  readonly troubled: number;
  /** The first of them, failed steps before overdue folders. */
  readonly troubles: readonly HandoffTrouble[];
}

export const NO_HANDOFFS: HandoffSummary = { waiting: 0, oldestMs: undefined, troubled: 0, troubles: [] };
