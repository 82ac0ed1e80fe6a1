/** The tools of a poll, and the events that it emits. */
import type { Clock } from "../base/clock.ts";
import type { DeadlineLimits } from "../base/deadline.ts";
import type { Fault } from "../base/faults.ts";
import type { Outage } from "../base/outage.ts";
import type { Ledger } from "../ledger/port.ts";
import type { TransferJob } from "../model/job.ts";
import type { TransferRecord } from "../model/record.ts";
import type { Passwords } from "../passwords/port.ts";
import type { JobQueue } from "../queue/port.ts";

export interface PollTools {
  readonly ledger: Ledger;
  readonly passwords: Passwords;
  readonly queue: JobQueue;
  readonly clock: Clock;
  /** The disk is full, for transfers (by ledger name) and polls (by mailbox). */
  readonly diskFull: Outage;
  readonly watch: PollWatch;
  /** How many transfers are taken up at once. */
  readonly atOnce: number;
  /** A poll that takes longer fails. */
  readonly deadline: DeadlineLimits;
}

/** Hears what polls find. Must not throw. */
interface PollWatch {
  /** `unusable`: how many entries of the list cannot be used. */
  polled(mailbox: string, listed: number, discovered: number, unusable: number): void;
  /** `first`: it is the first failure since a poll succeeded. `waitMs`: the next poll comes no sooner. */
  pollFailed(mailbox: string, fault: Fault, first: boolean, waitMs: number): void;
  /** `fault`: what it failed for, last. */
  recovered(mailbox: string, failedForMs: number, fault: Fault): void;
  discovered(record: TransferRecord): void;
  /** How many listed entries cannot be used, and the first reasons. Not told again while polls find the same. */
  rejected(mailbox: string, entries: number, reasons: readonly Fault[]): void;
  expiresSoon(record: TransferRecord): void;
}

export function jobOf(ledger: Ledger, mailbox: string, trackingId: string, expiresMs: number): TransferJob {
  return { key: ledger.nameOf({ mailbox, trackingId }), mailbox, trackingId, expiresMs };
}

/** In milliseconds; far in the future where the expiry is not known. */
export function expiryOf({ expires }: Pick<TransferRecord, "expires">): number {
  return expires === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(expires);
}
