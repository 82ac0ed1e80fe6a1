/** The doctor's findings, and the outcome that follows from them. */
import type { FaultCode } from "../../base/fault-codes.ts";
import type { Fault } from "../../base/faults.ts";
import type { Outcome } from "../context.ts";

/** In the order of the checks. */
export const AREAS = [
  "configuration",
  "folders",
  "file system",
  "queue",
  "service",
  "notifications",
  "daemon",
] as const;

export type Area = (typeof AREAS)[number];

export interface Finding {
  readonly area: Area;
  readonly check: string;
  readonly status: "ok" | "warning" | "failed" | "skipped";
  readonly detail: string;
  readonly advice?: string | undefined;
}

/** The remedy of a failure: another configuration or set-up, a person, or a connection. */
type Failure = "usage" | "attention" | "unreachable";

/** An earlier kind may hide a later one, so it decides the outcome. */
const WORST_FIRST: readonly Failure[] = ["usage", "unreachable", "attention"];

export const UNREACHABLE: ReadonlySet<FaultCode> = new Set<FaultCode>([
  "SERVICE_UNREACHABLE",
  "SERVICE_TIMEOUT",
  "CONNECTION_LOST",
  "TLS_REFUSED",
  "PROXY_REFUSED",
  "REDIRECT_REFUSED",
  "RATE_LIMITED",
  "SERVER_FAULT",
  "QUEUE_UNREACHABLE",
  "QUEUE_REFUSED",
  "MAIL_UNREACHABLE",
  "MAIL_DEFERRED",
]);

const MISCONFIGURED: ReadonlySet<FaultCode> = new Set<FaultCode>([
  "CONFIG_INVALID",
  "SECRET_UNREADABLE",
  "DISK_REFUSED",
  "DISK_UNREADABLE",
  "WORK_NOT_OURS",
  "INBOX_APART",
  "GROUP_UNKNOWN",
  "GROUP_REFUSED",
  "QUEUE_UNSUITABLE",
  "NO_SUCH_ENDPOINT",
  "MAIL_TLS_REFUSED",
  "MAIL_LOGIN_REFUSED",
  "MAIL_REFUSED",
]);

/** The service answers, but a person has to change something: a registration, a setting, a secret, or the disk. */
export const NEEDS_PERSON: ReadonlySet<string> = new Set<FaultCode>([
  "TOKEN_REFUSED",
  "POLICY_REFUSED",
  "NOT_LICENSED",
  "ACCESS_REFUSED",
  "API_VERSION",
  "NO_SUCH_ENDPOINT",
  "SECRET_UNREADABLE",
  "DISK_FULL",
  "DISK_REFUSED",
]);

export class Findings {
  readonly all: Finding[] = [];
  readonly #failures = new Set<Failure>();
  readonly #onFinding: (finding: Finding) => void;

  /** `onFinding` is called at once for each finding. */
  constructor(onFinding: (finding: Finding) => void) {
    this.#onFinding = onFinding;
  }

  ok(area: Area, check: string, detail: string): void {
    this.#add({ area, check, status: "ok", detail });
  }

  warn(area: Area, check: string, detail: string, advice?: string): void {
    this.#add({ area, check, status: "warning", detail, advice });
  }

  skip(area: Area, check: string, why: string): void {
    this.#add({ area, check, status: "skipped", detail: why });
  }

  fail(area: Area, check: string, failure: Failure, detail: string, advice?: string): void {
    this.#failures.add(failure);
    this.#add({ area, check, status: "failed", detail, advice });
  }

  /** Adds the fault's message, and its advice unless a better one is given. */
  failWith(area: Area, check: string, fault: Fault, advice: string = fault.advice): void {
    this.fail(area, check, failureOf(fault), fault.message, advice);
  }

  addAll(other: Findings): void {
    for (const failure of other.#failures) this.#failures.add(failure);
    for (const finding of other.all) this.#add(finding);
  }

  count(status: Finding["status"]): number {
    return this.all.filter((finding) => finding.status === status).length;
  }

  get outcome(): Outcome {
    return WORST_FIRST.find((failure) => this.#failures.has(failure)) ?? "fine";
  }

  #add(finding: Finding): void {
    this.all.push(finding);
    this.#onFinding(finding);
  }
}

function failureOf({ code }: Fault): Failure {
  if (UNREACHABLE.has(code)) return "unreachable";
  return MISCONFIGURED.has(code) ? "usage" : "attention";
}
