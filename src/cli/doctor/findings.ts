/** The doctor's findings, and the outcome that follows from them. */
import { asFault, type Fault } from "../../base/faults.ts";
import type { Settings } from "../../config/settings.ts";
import { explainPermission } from "../../host/permission.ts";
import { type Outcome, outcomeOfFault } from "../command.ts";

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

/**
 * What a failure needs: other rights, another configuration or set-up, a connection, a person. The earliest of them in this
 * list decides the outcome, because it may hide the others.
 */
const WORST_FIRST = ["denied", "usage", "unreachable", "attention"] as const;

type Failure = (typeof WORST_FIRST)[number];

/** What a check gets. */
export interface Examination {
  readonly findings: Findings;
  readonly settings: Settings;
  readonly signal: AbortSignal;
}

/** The findings of one area. */
export class Findings {
  readonly #area: Area;
  readonly #onFinding: (finding: Finding) => void;
  readonly #failures: Set<Failure>;

  /** `onFinding` is called at once for each finding. */
  constructor(area: Area, onFinding: (finding: Finding) => void, failures = new Set<Failure>()) {
    this.#area = area;
    this.#onFinding = onFinding;
    this.#failures = failures;
  }

  /** For the findings of another area, which count for the same outcome. */
  in(area: Area): Findings {
    return new Findings(area, this.#onFinding, this.#failures);
  }

  get outcome(): Outcome {
    return WORST_FIRST.find((failure) => this.#failures.has(failure)) ?? "fine";
  }

  ok(check: string, detail: string): void {
    this.#add({ check, status: "ok", detail });
  }

  warn(check: string, detail: string, advice?: string): void {
    this.#add({ check, status: "warning", detail, advice });
  }

  skip(check: string, why: string): void {
    this.#add({ check, status: "skipped", detail: why });
  }

  fail(check: string, failure: Failure, detail: string, advice?: string): void {
    this.#failures.add(failure);
    this.#add({ check, status: "failed", detail, advice });
  }

  #add(finding: Omit<Finding, "area">): void {
    this.#onFinding({ area: this.#area, ...finding });
  }

  /** Adds the fault's message, and its advice unless a better one is given. */
  failWith(check: string, fault: Fault, advice: string = fault.advice): void {
    const outcome = outcomeOfFault(fault);
    // An unexpected fault needs a person.
    const failure = WORST_FIRST.find((it) => it === outcome) ?? "attention";
    this.fail(check, failure, fault.message, advice);
  }

  /** Adds the fault that the work throws, and then returns `undefined`. Throws `STOPPED`. */
  async attempt<T>(check: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      const fault = await explainPermission(asFault(error));
      if (fault.code === "STOPPED") throw fault;
      this.failWith(check, fault);
      return undefined;
    }
  }
}
