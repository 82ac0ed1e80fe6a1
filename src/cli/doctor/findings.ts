/** The doctor's findings, and the outcome that follows from them. */
import type { Fault } from "../../base/faults.ts";
import { type Outcome, outcomeOfFault } from "../exit-codes.ts";

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

/** The remedy of a failure: other rights, another configuration or set-up, a connection, or a person. */
type Failure = "denied" | "usage" | "unreachable" | "attention";

/** An earlier kind may hide a later one, so it decides the outcome. */
const WORST_FIRST: readonly Failure[] = ["denied", "usage", "unreachable", "attention"];

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

function failureOf(fault: Fault): Failure {
  const outcome = outcomeOfFault(fault);
  return WORST_FIRST.find((failure) => failure === outcome) ?? "attention";
}
