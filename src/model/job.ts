/** What the engines run: polls of mailboxes, and the downloads of transfers. */
import type { TransferKey } from "./record.ts";

export interface TransferJob extends TransferKey {
  /** The ledger's name of the transfer: a second job of the same key is the same job. */
  readonly key: string;
  /** When the transfer expires, in milliseconds; what expires first goes first. */
  readonly expiresMs: number;
}

/** How many polls a process has under way, and one more for each further service. */
export const POLLS_AT_ONCE = 16;

/** The service of each mailbox that is polled. Returns the same map until the configuration changes. */
export type Services = () => ReadonlyMap<string, string>;

export interface PollSchedule {
  readonly mailbox: string;
  readonly everyMs: number;
}

/** What becomes of a job whose run is over. */
export type Next =
  | { readonly kind: "done" }
  /** `limitMs`: the service asked for fewer requests, and none of its jobs begins in this time. */
  | { readonly kind: "again"; readonly afterMs: number; readonly limitMs?: number };

export const DONE: Next = { kind: "done" };
