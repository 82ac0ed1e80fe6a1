/** Decides whether a delivery goes on without an operation that failed: one table for all optional operations. */
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import type { Run } from "./run.ts";

/** An operation that has failed this often in a round counts as refused. */
const PERSISTENT_FROM = 5;

/** Operations that a delivery can do without. */
export type Optional = "zip" | "checksums" | "message";

/** Answers about the transfer as a whole. */
const ABOUT_TRANSFER: ReadonlySet<FaultCode> = new Set([
  "PASSWORD_REFUSED",
  "TRANSFER_LOCKED",
  "TRANSFER_DELETED",
]);

/** Answers that say nothing about the request. */
const TRANSIENT: ReadonlySet<FaultCode> = new Set(["RATE_LIMITED", "SERVICE_TIMEOUT"]);

/**
 * `refused`: the service refuses the operation. `foreign`: the answer is a proxy's, or is about the whole transfer.
 * `failed`: a server error, or a conflict that may pass. `transient`: there was no answer, or one that asks to wait. `other`: no failed request, such
 * as a full disk.
 */
type Kind = "refused" | "foreign" | "failed" | "transient" | "other";

/** When the delivery goes on without the operation. `persistent`: after several failures. */
const GOES_ON: Readonly<Record<Optional, Readonly<Record<Kind, "now" | "persistent" | "never">>>> = {
  // Single files replace a ZIP completely, so there is no need to wait.
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
 * Counts a failure of an optional operation. Returns whether the delivery goes on without it; otherwise the attempt has
 * failed. Only failures of the same operation count: a transfer may have waited for the disk or for a lock many times.
 */
export function failOptional(run: Run, operation: Optional, fault: Fault): boolean {
  const when = GOES_ON[operation][kindOf(fault)];
  return when === "now" || (when === "persistent" && run.countFailure(operation) >= PERSISTENT_FROM);
}

/** The transfer was just opened, so an optional operation cannot fail because of the transfer as a whole. */
export function asOperationFault(fault: Fault): Fault {
  if (!ABOUT_TRANSFER.has(fault.code) || fault.answeredBy !== "service") return fault;
  return new Fault("BAD_ANSWER", { detail: fault.message, answeredBy: "service", cause: fault });
}

/** Whether the service itself refused, so that a retry is of no use. */
export function isRefusedForGood(fault: Fault): boolean {
  return kindOf(fault) === "refused";
}

/** Counts a check without a verdict. Returns how often that has happened, and whether the transfer needs a person. */
export function failCheck(run: Run): { readonly times: number; readonly needsPerson: boolean } {
  const times = run.countFailure("check");
  return { times, needsPerson: times >= PERSISTENT_FROM };
}

/** Counts a failure of an operation that every delivery needs. Returns whether the transfer needs a person. */
export function failRequired(run: Run, fault: Fault): boolean {
  const isTransient =
    fault.answeredBy === undefined ? fault.verdict === "retry" : kindOf(fault) !== "refused";
  return run.countFailure("rest") >= PERSISTENT_FROM || !isTransient;
}

function kindOf(fault: Fault): Kind {
  const { answeredBy, code } = fault;
  if (answeredBy === undefined || code === "STOPPED") return "other";
  if (answeredBy === "none" || answeredBy === "unsent") return "transient";
  if (TRANSIENT.has(code)) return "transient";
  if (code === "SERVER_FAULT" || code === "CONFLICT") return "failed";
  if (answeredBy === "intermediary") return "foreign";
  return ABOUT_TRANSFER.has(code) ? "foreign" : "refused";
}
