/** What an operator wants done with one transfer. */

export const ACTIONS = ["retry", "release", "discard", "redeliver"] as const;

/**
 * `retry`: now, not later; one in quarantine from the start. `release`: deliver one in quarantine, on the operator's
 * word. `discard`: drop it, for good. `redeliver`: deliver once more what was delivered.
 */
export type Action = (typeof ACTIONS)[number];

export interface Order {
  readonly action: Action;
  readonly mailbox: string;
  readonly trackingId: string;
}
