/** The tools of a poll. */

import type { Clock } from "../base/clock.ts";
import type { DeadlineLimits } from "../base/deadline.ts";
import type { Outage } from "../base/outage.ts";
import type { Ledger } from "../ledger/port.ts";
import type { Emit } from "../model/events.ts";
import type { TransferJob } from "../model/job.ts";
import { mailboxIdOf } from "../model/transfer.ts";
import type { Passwords } from "../passwords/port.ts";
import type { JobQueue } from "../queue/port.ts";

export interface PollTools {
  readonly ledger: Ledger;
  readonly passwords: Passwords;
  readonly queue: JobQueue;
  readonly clock: Clock;
  /** Lasts while a disk cannot be used. Its keys are ledger names of transfers, mailboxes, and paths of folders. */
  readonly diskTrouble: Outage;
  readonly emit: Emit;
  /** How many transfers are taken up at once, as configured now. */
  atOnce(): number;
  /** A poll that takes longer fails. */
  readonly deadline: DeadlineLimits;
}

export function jobOf(ledger: Ledger, mailbox: string, trackingId: string, expiresMs: number): TransferJob {
  return {
    key: ledger.nameOf({ mailbox, trackingId }),
    mailbox: mailboxIdOf(mailbox),
    trackingId,
    expiresMs,
  };
}
