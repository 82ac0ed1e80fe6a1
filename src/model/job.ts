/** Jobs that the engines run: polls of mailboxes and downloads of transfers. */
import type { TransferKey } from "./record.ts";

export interface TransferJob extends TransferKey {
  /** The ledger's name of the transfer. Two jobs with the same key are one job. */
  readonly key: string;
  /** When the transfer expires. The job that expires first runs first. */
  readonly expiresMs: number;
}

/** Polls at once in one process; each service beyond the first adds one. */
export const POLLS_AT_ONCE = 16;

/** The service of each mailbox that is polled. Returns the same map until the configuration changes. */
export type Services = () => ReadonlyMap<string, string>;

export interface PollSchedule {
  readonly mailbox: string;
  readonly everyMs: number;
}

/** What follows a poll. */
export interface PollWait {
  /** The mailbox is not polled again for this long; 0: its interval decides. */
  readonly waitMs: number;
  /** The service asked for a rest of this time. */
  readonly limitMs?: number;
  /** The service gave no answer, or failed, and did not say for how long. */
  readonly isSilent?: boolean;
}

/** A service rests: none of its mailboxes is polled by its schedule, and none of its jobs starts if it asked for that. */
export interface Rest {
  /** The service asked for it. Otherwise it gives no answer. */
  readonly isAsked: boolean;
  /** After `forMs`, one mailbox asks for all until there is an answer. Otherwise the rest is over then. */
  readonly isProbed: boolean;
  readonly forMs: number;
}

export const NO_WAIT: PollWait = { waitMs: 0 };

/** How a job continues after a run. */
export type Next =
  | { readonly kind: "done" }
  /** `limitMs`: the service asked for a rest of this time. */
  | { readonly kind: "again"; readonly afterMs: number; readonly limitMs?: number };

export const DONE: Next = { kind: "done" };
