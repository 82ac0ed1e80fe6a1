/** Open transfers: reads them from the disk, because orders and other processes change them, and queues some. */

import { isAbsolute } from "node:path";
import type { FaultCode } from "../base/fault-codes.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { jobOf, type MailboxState } from "../mailbox/state.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import { watchDropFolder } from "../passwords/stored.ts";
import { clearDiskWait } from "../transfer/settle.ts";
import type { Parts } from "./parts.ts";

export interface Waiting {
  readonly records: readonly TransferRecord[];
  /** Whether every record could be read. */
  readonly isWhole: boolean;
}

export interface Unfinished extends Waiting {
  /** Adds each transfer to its mailbox. Clears the disk wait of every transfer and mailbox that is no longer active. */
  apply(mailboxes: ReadonlyMap<MailboxId, MailboxState>): void;
}

/** Notes open transfers at their mailboxes. Transfers of mailboxes that are not configured are skipped. */
export function noteUnfinished(
  unfinished: readonly TransferRecord[],
  mailboxes: ReadonlyMap<MailboxId, MailboxState>,
): void {
  for (const record of unfinished) {
    // Also for a transfer that a poll found settled: an operator may have begun another round since.
    mailboxes.get(mailboxIdOf(record.mailbox))?.transfers.noteOpen(record.trackingId);
  }
}

/** Only reads. Skips damaged records: a start reports them. */
export async function readUnfinished(
  tools: Pick<Parts, "ledger" | "inbox" | "diskTrouble">,
): Promise<Unfinished> {
  const { diskTrouble, ledger } = tools;
  // Read before the records, which may lack a transfer that begins to wait meanwhile. Paths are keys of lost folders.
  const waiting = diskTrouble.keys().filter((key) => !isAbsolute(key));
  let isWhole = true;
  const records = await Array.fromAsync(ledger.open(() => (isWhole = false)));
  return {
    records,
    isWhole,
    apply(mailboxes) {
      noteUnfinished(records, mailboxes);
      if (!isWhole) return;
      const isActive = (name: string) => mailboxes.get(mailboxIdOf(name))?.mailbox.paused === false;
      // Another process may have found room, and another reason to wait.
      const waitsOtherwise = ({ state, reason }: TransferRecord) => state === "waiting" && reason !== "disk";
      const wanted = records.filter((record) => isActive(record.mailbox) && !waitsOtherwise(record));
      const names = new Set(wanted.map((record) => ledger.nameOf(record)));
      for (const key of waiting) if (!names.has(key) && !isActive(key)) clearDiskWait(tools, key);
    },
  };
}

/**
 * Queues transfers whose content is complete, or in quarantine: they need no poll, and the service may no longer list
 * them. Returns whether every record could be read.
 */
export async function resumeComplete({ ledger, queue }: Parts): Promise<boolean> {
  let isWhole = true;
  for await (const record of ledger.open(() => (isWhole = false))) {
    const { complete, round } = record;
    const findQuarantined = () =>
      ledger.findInQuarantine(record).catch(() => {
        isWhole = false;
        return undefined;
      });
    const isHere = complete !== undefined || (round > 1 && (await findQuarantined()) !== undefined);
    if (isHere) await queue.add(jobOf(ledger, record));
  }
  return isWhole;
}

/** After these faults a service may need only a short pause. */
const PAUSING: ReadonlySet<string> = new Set<FaultCode>(["RATE_LIMITED", "PASSWORDS_HELD"]);
/** Of one pause, and of all pauses together. A transfer that waits for longer than `max` is left to the next run. */
const PAUSE_MS = { min: 1_000, max: 2 * 60_000, total: 10 * 60_000 };

/** Waits until all jobs have run, also those whose service needs a short pause: the next run may be hours away. */
export async function finishJobs(
  { ledger, queue, clock }: Parts,
  active: ReadonlySet<MailboxId>,
  stop: AbortSignal,
): Promise<void> {
  const beganMs = clock.now();
  for (let leftMs = PAUSE_MS.total; ; ) {
    await queue.idle();
    await ledger.flush();
    const nowMs = clock.now();
    const untilMs = ({ until }: TransferRecord) => Date.parse(until ?? "");
    const isPausedShortly = (record: TransferRecord) =>
      PAUSING.has(record.code ?? "") && untilMs(record) > beganMs && untilMs(record) < nowMs + PAUSE_MS.max;
    // The end of the run counts damaged records.
    const open = await Array.fromAsync(ledger.open(() => {}));
    const paused = open.filter(
      (record) => active.has(mailboxIdOf(record.mailbox)) && isPausedShortly(record),
    );
    const pauseMs = Math.max(PAUSE_MS.min, ...paused.map((record) => untilMs(record) - nowMs));
    leftMs -= pauseMs;
    if (paused.length === 0 || leftMs < 0 || stop.aborted) return;
    await pauseOrAbort(pauseMs, stop);
    for (const record of paused) await queue.runNow(jobOf(ledger, record));
  }
}

/** Watches the folder of supplied passwords: a transfer whose password arrives is downloaded at once. */
export function watchPasswords({ live, ledger, queue, mailboxes, emit }: Parts) {
  const downloadNow = async (mailbox: string, trackingId: string) => {
    const record = await ledger.find({ mailbox, trackingId });
    if (record === undefined || hasEnded(record)) return;
    ledger.note({ ...record, wanted: true });
    await ledger.flush();
    await queue.runNow(jobOf(ledger, record));
  };
  return watchDropFolder(
    live.now.state,
    (trackingId) => {
      for (const [id, { transfers }] of mailboxes.states) {
        // If Redis is away, the next poll finds the password.
        if (transfers.open.has(trackingId)) downloadNow(id, trackingId).catch(() => {});
      }
    },
    (fault) => emit({ type: "folder-unwatchable", fault }),
  );
}
