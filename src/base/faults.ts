/** Errors that carry a verdict: what to do about them. */

import { areaOf, FAULT_CODES, type FaultCode, type Verdict } from "./fault-codes.ts";

/**
 * Who answered a request. `service`: the answer has the service's own format. `intermediary`: it has not, so a
 * proxy may have written it. `none`: no answer came, or it was cut short. `unsent`: the request was never sent.
 */
export type AnsweredBy = "service" | "intermediary" | "none" | "unsent";

export interface FaultDetails {
  /** What exactly happened, for the operator: never a secret, never an href. */
  readonly detail?: string | undefined;
  /** Better advice than that of the code. */
  readonly advice?: string | undefined;
  /** How long the service asked us to wait. */
  readonly retryAfterMs?: number | undefined;
  /** Missing if no request was made. */
  readonly answeredBy?: AnsweredBy | undefined;
  /** The end of what a failed program wrote. */
  readonly output?: string;
  readonly cause?: unknown;
}

export class Fault extends Error {
  override name = "Fault";
  readonly code: FaultCode;
  readonly verdict: Verdict;
  readonly advice: string;
  readonly retryAfterMs: number | undefined;
  readonly answeredBy: AnsweredBy | undefined;
  /** Several lines of untrusted text, bounded, without control characters. Missing if there is none. */
  readonly output: string | undefined;

  constructor(code: FaultCode, details: FaultDetails = {}) {
    const meaning = FAULT_CODES[code];
    super(
      details.detail === undefined ? meaning.happened : `${meaning.happened}: ${details.detail}`,
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.code = code;
    this.verdict = meaning.verdict;
    this.advice = details.advice ?? meaning.advice;
    this.retryAfterMs = details.retryAfterMs;
    this.answeredBy = details.answeredBy;
    this.output = details.output === "" ? undefined : details.output;
  }
}

/** Whether a fault, or a trouble with the code of one, is about a disk that Inlet needs. */
export function isOfDisk({ code }: { readonly code: string }): boolean {
  return areaOf(code) === "disk";
}

/** Whether the service, or what stands before it, says for how long it wants no requests. */
export function isRestAsked({ code, retryAfterMs = 0 }: Fault): boolean {
  return retryAfterMs > 0 && (code === "RATE_LIMITED" || code === "SERVER_FAULT");
}

/** Error codes of the file system with a meaning of their own. */
const MEANINGS: Readonly<Record<string, FaultCode>> = {
  EEXIST: "TARGET_EXISTS",
  ENOSPC: "DISK_FULL",
  EDQUOT: "DISK_FULL",
  EROFS: "DISK_READ_ONLY",
};

/** A fault for an error of the file system, with `path` or the path of the error. Any other error is returned as it is. */
export function faultOfDisk(error: unknown, path?: string): unknown {
  if (!(error instanceof Error && "syscall" in error && "code" in error)) return error;
  // `dest` is the new name of a rename or a link.
  const { path: from, dest = from } = error as { readonly path?: unknown; readonly dest?: unknown };
  const named = path ?? dest;
  // Errors of the network have no path. A program that could not be started has one, but is no file to write.
  if (named === undefined || String(error.syscall).startsWith("spawn")) return error;
  const code = MEANINGS[String(error.code)] ?? "DISK_REFUSED";
  return new Fault(code, {
    detail: code === "TARGET_EXISTS" ? String(named) : `${named} (${String(error.code)})`,
    cause: error,
  });
}

/** A fault as it is, the fault of an error of the file system, and any other error as `UNEXPECTED`. */
export function asFault(thrown: unknown): Fault {
  const error = faultOfDisk(thrown);
  if (error instanceof Fault) return error;
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new Fault("UNEXPECTED", { detail, cause: error });
}

/** The same fault with better advice. */
export function withAdvice(fault: Fault, advice: string): Fault {
  const { code, retryAfterMs, answeredBy, cause } = fault;
  return new Fault(code, { advice, detail: detailOf(fault) || undefined, retryAfterMs, answeredBy, cause });
}

/** What exactly happened, without the sentence of the code; empty if nothing more is known. */
export function detailOf({ code, message }: Fault): string {
  return message.slice(FAULT_CODES[code].happened.length).replace(/^: /, "");
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The system's name for a failure, such as `ENOENT`; empty for any other error. */
export function systemCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** For `catch`: an error of the system, or a fault, with one of these codes becomes `undefined`, any other is thrown again. */
export function tolerate(...codes: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!codes.includes(systemCode(error))) throw error;
  };
}

/** For a file that cannot be read, or looked at. */
export function unreadable(path: string, error: unknown): Fault {
  return new Fault("DISK_UNREADABLE", { detail: `${path} (${systemCode(error)})`, cause: error });
}

/** One paragraph for a person: what happened, then what to do. */
export function describeFault(fault: Fault): string {
  const { retryAfterMs, answeredBy } = fault;
  const hasAsked = retryAfterMs !== undefined && (answeredBy === "service" || answeredBy === "intermediary");
  const waits = hasAsked ? ` It asks to wait ${Math.ceil(retryAfterMs / 1000)} s.` : "";
  return `${fault.message}${/[.!?]$/.test(fault.message) ? "" : "."}${waits} ${fault.advice}`;
}
