/**
 * Decides what a fault means for a transfer: which state it enters, and when it is retried; or whether the delivery goes on
 * without the operation that failed.
 */
import { backoffMs, restMs } from "../base/backoff.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { describeFault, Fault, isOfDisk, isRestAsked } from "../base/faults.ts";
import { beginWait } from "../base/waits.ts";
import { MIN_LOCK_MS } from "../model/attempts.ts";
import { DONE, type Next } from "../model/job.ts";
import { BROWSER, LOCKED, type TransferRecord, waitIdOf, withoutMissing } from "../model/record.ts";
import { TRANSFER_STATES } from "../model/transfer.ts";
import type { Outcome, Run, TransferTools } from "./run.ts";

/** Faults after which the whole service may be in trouble. */
const SERVICE_TROUBLE: ReadonlySet<FaultCode> = new Set([
  "SERVICE_UNREACHABLE",
  "SERVICE_TIMEOUT",
  "CONNECTION_LOST",
  "SERVER_FAULT",
  "BAD_ANSWER",
]);

/** What a fault leads to. `fault`: that of the attempt, or why it was ended. */
export async function outcomeOf(run: Run, fault: Fault): Promise<Outcome> {
  const { tools, source } = run;
  if (fault.code === "ROUND_LOST") return { kind: "lost" };
  if (run.stop.aborted || fault.code === "STOPPED") return { kind: "stopped" };
  if (SERVICE_TROUBLE.has(fault.code)) tools.passwords.doubt(source.service);
  if (fault.code === "DISK_FULL") tools.diskTrouble.add(run.key, fault);
  else clearDiskWait(tools, run.key);
  // The disk may have failed after the round had ended with this stage: only the move is left. Or another process has
  // ended the round, and removed the stage while we wrote to it.
  const end = run.isDecided ? "this" : await endOf(run);
  if (end === "this") return { kind: "stuck", fault };
  if (end === "another") return { kind: "lost" };
  // After a failed sync, the disk may lack what readers still see. The next attempt may copy files from the stage, which a
  // new sync then proves.
  if (isOfDisk(fault) && fault.code !== "DISK_FULL") await run.dropStage();
  return judge(run, fault);
}

async function endOf({ tools, record, stage, key }: Run): Promise<"this" | "another" | undefined> {
  if (stage !== undefined) return tools.ledger.stages.endedBy(stage);
  return (await tools.ledger.readEnd(key, record.round)) === undefined ? undefined : "another";
}

/** A transfer or mailbox no longer waits for room on the disk. `key`: as in `diskTrouble`. */
export function clearDiskWait(
  { diskTrouble, inbox }: Pick<TransferTools, "diskTrouble" | "inbox">,
  key: string,
): void {
  diskTrouble.clear(key);
  inbox.forget(key);
}

/** The disk refuses the record, or the move after it. */
export function retryStuck({ tools, key, record }: Run, fault: Fault): Next {
  const { diskTrouble, emit, patience, stuck } = tools;
  stuck.add(key);
  if (fault.code === "DISK_FULL") diskTrouble.add(key, fault);
  else emit({ type: "transfer-stuck", record, fault });
  return { kind: "again", afterMs: patience.diskMs };
}

async function judge(run: Run, fault: Fault): Promise<Outcome> {
  const { patience, random } = run.tools;
  let isUnconfirmed = false;
  if (fault.code === "TRANSFER_DELETED" || fault.code === "NOT_FOUND") {
    const gone = await askState(run).catch((error: unknown) => {
      // The service does not say: the next attempt asks again before it sends a password.
      isUnconfirmed = error instanceof Fault && error.answeredBy !== undefined;
      if (!isUnconfirmed) throw error;
      return undefined;
    });
    if (gone !== undefined) return gone;
  } else if (fault.verdict === "quarantine") return { kind: "quarantine", fault };
  if (fault.code === "BROWSER_ONLY") {
    const facts = { reason: BROWSER, message: describeFault(fault), code: fault.code, needsPerson: true };
    return { kind: "wait", facts, fault, next: DONE };
  }
  if (isOfDisk(fault)) return wait(run, "disk", fault, patience.diskMs);
  if (fault.code === "ONE_AT_A_TIME") return wait(run, "large", fault, patience.slowMs);
  if (fault.code === "GAVE_WAY") return wait(run, "slow", fault, patience.slowMs);
  if (fault.code === "CHECK_FAILED") {
    const times = run.countFailure("check");
    const person = times >= PERSISTENT_FROM ? { needsPerson: true } : {};
    return wait(run, "check", fault, backoffMs(times, random(), patience.retryMs), person);
  }
  if (fault.code === "TRANSFER_LOCKED") {
    return wait(run, LOCKED, fault, lockMs(run, fault, patience.lockedMs));
  }
  const pauseMs = backoffMs(run.record.attempts, random(), patience.retryMs);
  const vanished = isUnconfirmed || run.record.vanished ? { vanished: true } : {};
  return wait(run, "retry", fault, Math.max(pauseMs, restMs(fault)), vanished);
}

/** An early request may prolong a lock. So there is a shortest wait, and it grows with each lock in the round. */
function lockMs(run: Run, { retryAfterMs }: Fault, usualMs: number): number {
  const least = Math.min(MIN_LOCK_MS * 2 ** (run.countFailure("locked") - 1), usualMs);
  return Math.max(retryAfterMs ?? usualMs, least);
}

function wait(
  run: Run,
  reason: string,
  fault: Fault,
  afterMs: number,
  more: Partial<TransferRecord> = {},
): Outcome {
  const { clock, patience } = run.tools;
  const until = beginWait(waitIdOf(run.record), afterMs, clock.now());
  const person = reason === "retry" && failRequired(run, fault) ? { needsPerson: true } : {};
  const { code, output } = fault;
  const why = { reason, message: describeFault(fault), code, ...withoutMissing({ output }) };
  // The backoff of this transfer must not pause the others of its service.
  const isLimiting = fault.code === "RATE_LIMITED" || isRestAsked(fault);
  const limit = isLimiting ? { limitMs: fault.retryAfterMs ?? patience.retryMs } : {};
  const facts = { ...why, until, ...person, ...more };
  return { kind: "wait", facts, fault, next: { kind: "again", afterMs, ...limit } };
}

/** What follows if the service says that the transfer is gone, or not ready; `undefined` if it can be opened. */
export async function askState(run: Run): Promise<Outcome | undefined> {
  const { source, record, signal, tools } = run;
  const state = await source.stateOf(record, signal);
  const meaning = state === undefined ? "gone" : TRANSFER_STATES[state];
  if (meaning === "open") return undefined;
  if (meaning === "later") {
    const pauseMs = backoffMs(record.attempts, tools.random(), tools.patience.retryMs);
    return wait(run, "retry", new Fault("NOT_READY", { detail: state }), pauseMs, { vanished: true });
  }
  const why = WHY_GONE[state ?? ""] ?? "the service no longer lists it";
  const message = `It was gone before it could be delivered: ${why}. Ask the sender to send it again.`;
  return { kind: "gone", reason: state ?? "not_listed", message };
}

const WHY_GONE: Readonly<Record<string, string>> = {
  deleted_by_expiration: "it expired",
  deleted_by_revocation: "the sender revoked it",
  deleted_by_admin: "the service's administrator deleted it",
  deleted_by_security: "its recipients tried too many wrong passwords",
  failed: "the service could not process it",
};

/** An operation that has failed this often in a round counts as refused. */
const PERSISTENT_FROM = 5;

/** Answers about the transfer as a whole. */
const ABOUT_TRANSFER: ReadonlySet<FaultCode> = new Set([
  "PASSWORD_REFUSED",
  "TRANSFER_LOCKED",
  "TRANSFER_DELETED",
]);

/** Answers that say nothing about the request. */
const TRANSIENT: ReadonlySet<FaultCode> = new Set(["RATE_LIMITED", "SERVICE_TIMEOUT"]);

/**
 * `refused`: the service refuses the operation. `transient`: there was no answer, or one that asks to wait. `failed`: any other
 * answer: a proxy's, one about the whole transfer, a server error, or a conflict that may pass. `other`: no failed request, such
 * as a full disk.
 */
export function kindOfFailure({ answeredBy, code }: Fault): "refused" | "transient" | "failed" | "other" {
  if (answeredBy === undefined || code === "STOPPED") return "other";
  if (answeredBy === "none" || answeredBy === "unsent" || TRANSIENT.has(code)) return "transient";
  const isFailure = code === "SERVER_FAULT" || code === "CONFLICT" || ABOUT_TRANSFER.has(code);
  return isFailure || answeredBy === "intermediary" ? "failed" : "refused";
}

/**
 * Counts a failure of an operation that a delivery can do without. Returns whether the delivery goes on without it; otherwise
 * the attempt has failed. Only failures of the same operation count: a transfer may have waited for the disk or for a lock
 * many times.
 */
export function failOptional(run: Run, operation: "zip" | "checksums" | "message", fault: Fault): boolean {
  const kind = kindOfFailure(fault);
  if (kind === "other") return false;
  // Single files replace a ZIP completely, so there is no need to wait.
  if (kind === "refused" || (kind === "failed" && operation === "zip")) return true;
  return run.countFailure(operation) >= PERSISTENT_FROM;
}

/** The transfer was just opened, so an optional operation cannot fail because of the transfer as a whole. */
export function asOperationFault(fault: Fault): Fault {
  if (!ABOUT_TRANSFER.has(fault.code) || fault.answeredBy !== "service") return fault;
  return new Fault("BAD_ANSWER", { detail: fault.message, answeredBy: "service", cause: fault });
}

/** Counts a failure of an operation that every delivery needs. Returns whether the transfer needs a person. */
function failRequired(run: Run, fault: Fault): boolean {
  const isTransient =
    fault.answeredBy === undefined ? fault.verdict === "retry" : kindOfFailure(fault) !== "refused";
  return run.countFailure("rest") >= PERSISTENT_FROM || !isTransient;
}
