/**
 * What a refused request means for a transfer: one table for all operations. `service/answers.ts` says who answered; no
 * other code decides by that.
 */
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import type { Run } from "./run.ts";

/** A failure of an operation that has lasted for so many tries counts as a refusal. */
const PERSISTENT_FROM = 5;

/** Operations that a delivery can do without. */
export type Optional = "zip" | "checksums" | "message";

/** Refusals of the whole transfer. If another request was just answered, they concern the operation. */
const ABOUT_TRANSFER: ReadonlySet<FaultCode> = new Set([
  "PASSWORD_REFUSED",
  "TRANSFER_LOCKED",
  "TRANSFER_DELETED",
]);

/** Answers that say nothing about the request. */
const TRANSIENT: ReadonlySet<FaultCode> = new Set(["RATE_LIMITED", "SERVICE_TIMEOUT"]);

/**
 * `refused`: the service itself will not do it. `foreign`: the answer is about something else, and the service may do it.
 * `failed`: the service tried, and could not. `transient`: there was no answer, or one that asks to wait. `other`: it is not
 * about this operation.
 */
type Kind = "refused" | "foreign" | "failed" | "transient" | "other";

const MEANING: Readonly<Record<Optional, Readonly<Record<Kind, "now" | "persistent" | "never">>>> = {
  // Single files do the same, so nothing is lost by not waiting.
  zip: { refused: "now", foreign: "now", failed: "now", transient: "persistent", other: "never" },
  checksums: {
    refused: "now",
    foreign: "persistent",
    failed: "persistent",
    transient: "persistent",
    other: "never",
  },
  message: {
    refused: "now",
    foreign: "persistent",
    failed: "persistent",
    transient: "persistent",
    other: "never",
  },
};

/**
 * Whether the delivery goes on without the operation; otherwise the fault is the transfer's. Only failures of the same
 * operation count: a transfer may have waited for the disk or for a lock many times.
 */
export function canDoWithout(run: Run, operation: Optional, fault: Fault): boolean {
  const when = MEANING[operation][kindOf(fault)];
  return when === "now" || (when === "persistent" && run.countFailure(operation) >= PERSISTENT_FROM);
}

/** An optional operation that says something about the whole transfer says nothing of the kind: it has just been opened. */
export function ofOperation(fault: Fault): Fault {
  if (!ABOUT_TRANSFER.has(fault.code) || fault.answeredBy !== "service") return fault;
  return new Fault("BAD_ANSWER", { detail: fault.message, answeredBy: "service", cause: fault });
}

/** Whether the service itself refused, so that asking again is of no use. */
export function isRefusedForGood(fault: Fault): boolean {
  return kindOf(fault) === "refused";
}

/** Whether a transfer that waits because of a fault needs a person. */
export function needsPerson(run: Run, fault: Fault): boolean {
  const isTransient =
    fault.answeredBy === undefined ? fault.verdict === "retry" : kindOf(fault) !== "refused";
  return run.countFailure("rest") >= PERSISTENT_FROM || !isTransient;
}

function kindOf(fault: Fault): Kind {
  const { answeredBy, code } = fault;
  if (answeredBy === undefined || code === "STOPPED") return "other";
  if (answeredBy === "none" || answeredBy === "unsent") return "transient";
  if (TRANSIENT.has(code)) return "transient";
  if (code === "SERVER_FAULT") return "failed";
  if (answeredBy === "intermediary") return "foreign";
  return ABOUT_TRANSFER.has(code) ? "foreign" : "refused";
}
