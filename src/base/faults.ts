/** Errors that carry a verdict, so that whoever catches one knows what to do without guessing. */
import { FAULT_CODES, type FaultCode } from "./fault-codes.ts";
import type { Verdict } from "./verdict.ts";

export interface FaultDetails {
  /** What exactly happened, for the operator: never a secret, never an href. */
  readonly detail?: string;
  /** How long the service asked us to wait. */
  readonly retryAfterMs?: number;
  /** The HTTP status of the answer, where there was one. */
  readonly status?: number;
  /** The service's own error number, where it gave one. */
  readonly errorCode?: number;
  readonly cause?: unknown;
}

export class Fault extends Error {
  override name = "Fault";
  readonly code: FaultCode;
  readonly verdict: Verdict;
  readonly advice: string;
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;
  readonly errorCode: number | undefined;

  constructor(code: FaultCode, details: FaultDetails = {}) {
    const meaning = FAULT_CODES[code];
    super(
      details.detail === undefined ? meaning.happened : `${meaning.happened}: ${details.detail}`,
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.code = code;
    this.verdict = meaning.verdict;
    this.advice = meaning.advice;
    this.retryAfterMs = details.retryAfterMs;
    this.status = details.status;
    this.errorCode = details.errorCode;
  }
}

/** Any error as a fault; what nobody foresaw is named. */
export function asFault(error: unknown): Fault {
  if (error instanceof Fault) return error;
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new Fault("UNEXPECTED", { detail, cause: error });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** One paragraph for a person: what happened, then what to do. */
export function describeFault(fault: Fault): string {
  const waits =
    fault.retryAfterMs === undefined ? "" : ` It asks to wait ${Math.ceil(fault.retryAfterMs / 1000)} s.`;
  return `${fault.message}${/[.!?]$/.test(fault.message) ? "" : "."}${waits} ${fault.advice}`;
}
