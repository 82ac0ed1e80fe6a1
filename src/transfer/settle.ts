/** Decides what a fault means for a transfer: which state it enters, and when it is retried. */
import { backoffMs } from "../base/backoff.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { asFault, describeFault, Fault } from "../base/faults.ts";
import { MIN_LOCK_MS } from "../model/attempts.ts";
import { DONE, type Next } from "../model/job.ts";
import type { TransferRecord } from "../model/record.ts";
import { failCheck, failRequired } from "./answers.ts";
import { quarantine } from "./deliver.ts";
import { clientOf } from "./open.ts";
import type { Run } from "./run.ts";
import type { Source, TransferTools } from "./tools.ts";

/** Faults after which the whole service may be in trouble. */
const SERVICE_TROUBLE: ReadonlySet<FaultCode> = new Set([
  "SERVICE_UNREACHABLE",
  "SERVICE_TIMEOUT",
  "CONNECTION_LOST",
  "SERVER_FAULT",
  "BAD_ANSWER",
]);

/** Faults after which a transfer waits for the disk of its inbox. */
const DISK_TROUBLE: ReadonlySet<FaultCode> = new Set([
  "DISK_FULL",
  "DISK_REFUSED",
  "INBOX_MISSING",
  "INBOX_APART",
]);

export async function settleFault(
  tools: TransferTools,
  source: Source,
  run: Run,
  fault: Fault,
  signal: AbortSignal,
): Promise<Next> {
  if (fault.code === "ROUND_LOST") return giveUp(tools, run);
  // Inlet is stopping: the content stays on the disk, and the next start continues with it.
  if (signal.aborted || fault.code === "STOPPED") return DONE;
  if (SERVICE_TROUBLE.has(fault.code)) tools.passwords.doubt(clientOf(source));
  if (fault.code === "DISK_FULL") tools.diskFull.add(run.key, fault);
  else clearDiskWait(tools, run.key);
  try {
    // The disk may have failed after the round had ended with this stage: only the move is left. Or another process has
    // ended the round, and removed the stage while we wrote to it.
    const end = run.isDecided ? "this" : await endOf(tools, run);
    if (end === "this") return retryStuck(tools, run, fault);
    if (end === "another") return await giveUp(tools, run);
    if (fault.code === "DISK_REFUSED") await distrustStage(tools, run);
    return await settle(tools, source, run, fault, signal);
  } catch (error) {
    const second = asFault(error);
    if (second.code === "ROUND_LOST") return giveUp(tools, run);
    // The disk also refuses the record: the next run finds the transfer unchanged.
    return retryStuck(tools, run, second);
  }
}

async function endOf(
  { ledger }: TransferTools,
  { record, stage, key }: Run,
): Promise<"this" | "another" | undefined> {
  if (stage !== undefined) return ledger.stages.endedBy(stage);
  return (await ledger.readEnd(key, record.round)) === undefined ? undefined : "another";
}

/** Another attempt, or an operator, has ended the round: this attempt's content is of no use. */
async function giveUp(tools: TransferTools, run: Run): Promise<Next> {
  clearDiskWait(tools, run.key);
  tools.emit({ type: "transfer-lost", record: run.record });
  if (run.stage !== undefined) await tools.ledger.stages.dropStage(run.stage).catch(() => {});
  return DONE;
}

/**
 * After a failed sync, the disk may lack what readers still see. So the stage is dropped; the next attempt may copy files
 * from it, which a new sync then proves.
 */
async function distrustStage({ ledger }: TransferTools, run: Run): Promise<void> {
  const { stage } = run;
  run.stage = undefined;
  if (stage !== undefined) await ledger.stages.dropStage(stage);
}

/** A transfer or mailbox no longer waits for room on the disk. `key`: as in `diskFull`. */
export function clearDiskWait(
  { diskFull, inbox }: Pick<TransferTools, "diskFull" | "inbox">,
  key: string,
): void {
  diskFull.clear(key);
  inbox.forget(key);
}

/** The disk refuses the record, or the rename after it. */
export function retryStuck({ diskFull, emit, patience }: TransferTools, run: Run, fault: Fault): Next {
  if (fault.code === "DISK_FULL") diskFull.add(run.key, fault);
  else emit({ type: "transfer-stuck", record: run.record, fault });
  return { kind: "again", afterMs: patience.diskMs };
}

async function settle(
  tools: TransferTools,
  source: Source,
  run: Run,
  fault: Fault,
  signal: AbortSignal,
): Promise<Next> {
  const { patience, random } = tools;
  let isUnconfirmed = false;
  if (fault.code === "TRANSFER_DELETED" || fault.code === "NOT_FOUND") {
    const isGone = await endIfGone(tools, source, run, signal).catch((error: unknown) => {
      // The service does not say: the next attempt asks again before it sends a password.
      isUnconfirmed = error instanceof Fault && error.answeredBy !== undefined;
      if (!isUnconfirmed) throw error;
      return false;
    });
    if (isGone) return DONE;
  } else if (fault.verdict === "quarantine") {
    await quarantine(tools, source, run, fault);
    return DONE;
  }
  if (DISK_TROUBLE.has(fault.code)) {
    return wait(tools, run, "disk", fault, patience.diskMs);
  }
  if (fault.code === "ONE_AT_A_TIME") return wait(tools, run, "large", fault, patience.slowMs);
  if (fault.code === "GAVE_WAY") return wait(tools, run, "slow", fault, patience.slowMs);
  if (fault.code === "CHECK_FAILED") {
    const { times, needsPerson } = failCheck(run);
    const person = needsPerson ? { needsPerson } : {};
    return wait(tools, run, "check", fault, backoffMs(times, random(), patience.retryMs), person);
  }
  if (fault.code === "TRANSFER_LOCKED") {
    return wait(tools, run, "locked", fault, lockMs(run, fault, patience.lockedMs));
  }
  const pauseMs = backoffMs(run.record.attempts, random(), patience.retryMs);
  const vanished = isUnconfirmed || run.record.vanished ? { vanished: true } : {};
  return wait(tools, run, "retry", fault, Math.max(pauseMs, fault.retryAfterMs ?? 0), vanished);
}

/** An early request may prolong a lock. So there is a shortest wait, and it grows with each lock in the round. */
function lockMs(run: Run, { retryAfterMs }: Fault, usualMs: number): number {
  const least = Math.min(MIN_LOCK_MS * 2 ** (run.countFailure("locked") - 1), usualMs);
  return Math.max(retryAfterMs ?? usualMs, least);
}

function wait(
  { clock, patience }: TransferTools,
  run: Run,
  reason: string,
  fault: Fault,
  afterMs: number,
  facts: Partial<TransferRecord> = {},
): Next {
  const until = new Date(clock.now() + afterMs).toISOString();
  const person = reason === "retry" && failRequired(run, fault) ? { needsPerson: true } : {};
  const why = { reason, message: describeFault(fault), code: fault.code };
  run.enter("waiting", { ...why, until, ...person, ...facts }, fault);
  if (fault.code !== "RATE_LIMITED") return { kind: "again", afterMs };
  // The backoff of this transfer must not pause the others of its service.
  return { kind: "again", afterMs, limitMs: fault.retryAfterMs ?? patience.retryMs };
}

/** Ends the round as `gone` if the service confirms it. Throws `ROUND_LOST`. */
export async function endIfGone(
  { passwords, ledger }: TransferTools,
  source: Source,
  run: Run,
  signal: AbortSignal,
): Promise<boolean> {
  const { trackingId } = run.record;
  const state = await source.stateOf(run.record, signal);
  if (state === "active" || state === "processing" || state === "unknown") return false;
  const gone = run.endRecord("gone", { reason: state ?? "not_listed", message: goneMessage(state) });
  if (!(await ledger.end(gone))) throw new Fault("ROUND_LOST", { detail: trackingId });
  run.noteEnd(gone);
  if (run.stage !== undefined) await ledger.stages.dropStage(run.stage).catch(() => {});
  passwords.settled(source.mailbox, trackingId);
  return true;
}

function goneMessage(state: string | undefined): string {
  const why: Readonly<{ [state: string]: string }> = {
    deleted_by_expiration: "it expired",
    deleted_by_revocation: "the sender revoked it",
    deleted_by_admin: "the service's administrator deleted it",
    deleted_by_security: "its recipients tried too many wrong passwords",
    failed: "the service could not process it",
  };
  const reason = why[state ?? ""] ?? "the service no longer lists it";
  return `It was gone before it could be delivered: ${reason}. Ask the sender to send it again.`;
}
