/** What a fault means for the transfer in hand: which state it enters, and when it is tried again. */
import { backoffMs } from "../base/backoff.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { asFault, describeFault, type Fault } from "../base/faults.ts";
import { DONE, type Next } from "../model/job.ts";
import { quarantine } from "./quarantine.ts";
import type { Record } from "./record.ts";
import type { CollectTools, StagedSource } from "./tools.ts";

/** After these the service may be in trouble as a whole, not just this transfer. */
const SHAKY: ReadonlySet<FaultCode> = new Set([
  "SERVICE_UNREACHABLE",
  "SERVICE_TIMEOUT",
  "CONNECTION_LOST",
  "SERVER_FAULT",
  "BAD_ANSWER",
]);

export async function settleFault(
  tools: CollectTools,
  source: StagedSource,
  record: Record,
  fault: Fault,
  signal: AbortSignal,
): Promise<Next> {
  if (fault.code === "CLAIM_LOST") return giveUp(tools, record);
  // Told to stop: what is on the disk stays, and the next start goes on from there.
  if (signal.aborted || fault.code === "STOPPED") return DONE;
  if (SHAKY.has(fault.code)) source.health.shaky = true;
  if (fault.code === "DISK_FULL") tools.diskFull.meets(record.key, fault);
  else hasRoom(tools, record);
  // The folder may have appeared already: any other state would have it collected, and delivered, a second time.
  if (record.receipt.state === "delivering") return stuck(tools, record, fault);
  try {
    return await settle(tools, source, record, fault, signal);
  } catch (error) {
    const next = asFault(error);
    if (next.code === "CLAIM_LOST") return giveUp(tools, record);
    // The disk refuses the receipt too: it stays as it was, and the next turn finds it so.
    return stuck(tools, record, next);
  }
}

/** Nothing was begun: whoever claims it at this moment goes on with it, or the disk refuses the claim. */
export function cannotClaim(tools: CollectTools, record: Record, fault: Fault): Next {
  return fault.code === "CLAIM_LOST" ? DONE : stuck(tools, record, fault);
}

/**
 * Another worker has the transfer now. What we have of it stays: should our last word have been `delivering`, the other
 * one takes it for finished content, and its absence for a delivery. Whoever settles the transfer clears it.
 */
function giveUp(tools: CollectTools, record: Record): Next {
  hasRoom(tools, record);
  tools.watch.lost(record.receipt);
  return DONE;
}

/** The disk is not what keeps this transfer back, now. */
export function hasRoom(
  { diskFull, inbox }: Pick<CollectTools, "diskFull" | "inbox">,
  { key }: { readonly key: string },
): void {
  diskFull.isPast(key);
  inbox.forget(key);
}

function stuck({ diskFull, watch, patience }: CollectTools, record: Record, fault: Fault): Next {
  if (fault.code === "DISK_FULL") diskFull.meets(record.key, fault);
  else watch.stuck(record.receipt, fault);
  return { kind: "again", afterMs: patience.diskMs };
}

async function settle(
  tools: CollectTools,
  source: StagedSource,
  record: Record,
  fault: Fault,
  signal: AbortSignal,
): Promise<Next> {
  const { patience, random } = tools;
  if (fault.code === "TRANSFER_DELETED" || fault.code === "NOT_FOUND") {
    if (await endIfGone(tools, source, record, signal)) return DONE;
  } else if (fault.verdict === "quarantine") {
    await quarantine(tools, source, record, fault);
    return DONE;
  }
  if (fault.code === "DISK_FULL" || fault.code === "DISK_REFUSED") {
    return wait(tools, record, "disk", fault, patience.diskMs);
  }
  if (fault.code === "TRANSFER_LOCKED") {
    return wait(tools, record, "locked", fault, fault.retryAfterMs ?? patience.lockedMs);
  }
  const pauseMs = backoffMs(record.receipt.attempts, random(), patience.retryMs);
  return wait(tools, record, "retry", fault, Math.max(pauseMs, fault.retryAfterMs ?? 0));
}

async function wait(
  { clock }: CollectTools,
  record: Record,
  reason: string,
  fault: Fault,
  afterMs: number,
): Promise<Next> {
  const until = new Date(clock.now() + afterMs).toISOString();
  await record.enter("waiting", { reason, message: describeFault(fault), until }, fault);
  return { kind: "again", afterMs, isLimit: fault.code === "RATE_LIMITED" };
}

/** Asks the service before it believes that a transfer is no more; what was downloaded of it goes too. */
export async function endIfGone(
  { passwords }: CollectTools,
  source: StagedSource,
  record: Record,
  signal: AbortSignal,
): Promise<boolean> {
  const { trackingId } = record.receipt;
  const state = await source.stateOf(trackingId, signal);
  if (state === "active" || state === "processing" || state === "unknown") return false;
  await record.enter("gone", { reason: state ?? "not_listed", message: goneMessage(state) });
  await source.stage.clear();
  await passwords.settled(source.mailbox, trackingId);
  return true;
}

function goneMessage(state: string | undefined): string {
  const why: Readonly<{ [state: string]: string }> = {
    deleted_by_expiration: "it expired",
    deleted_by_revocation: "the sender revoked it",
    deleted_by_admin: "the service's administrator deleted it",
    deleted_by_security: "too many wrong passwords were tried, by whichever recipient",
    failed: "the service could not process it",
  };
  const reason = why[state ?? ""] ?? "the service does not list it any more";
  return `It was gone before it could be delivered: ${reason}. Ask the sender to send it again.`;
}
