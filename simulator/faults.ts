/** The active faults: which requests each one strikes, and how often it has struck. */
import type { FaultPlan, Misbehaviour, Operation } from "./scenario.ts";

/** The properties of a request that a fault can select by. */
export interface Target {
  readonly operation: Operation;
  /** The tracking-id and the transfer-id, if the request belongs to a transfer. */
  readonly transfers: readonly string[];
  /** The name of the file, if the request is for one. */
  readonly file: string | undefined;
  readonly hasRange: boolean;
  /** The requested page of a list. Default 1. */
  readonly page: number;
}

/** A fault that strikes a request. */
export interface Strike {
  readonly id: string;
  readonly does: Misbehaviour;
  /** How often it has struck, including this time. */
  readonly count: number;
}

export interface FaultReport {
  readonly id: string;
  readonly plan: FaultPlan;
  /** The number of matching requests, regardless of `skip` and `times`. */
  readonly matched: number;
  readonly struck: number;
}

export class Faults {
  readonly #faults = new Map<string, { readonly plan: FaultPlan; matched: number; struck: number }>();
  #added = 0;

  add(plan: FaultPlan): string {
    this.#added += 1;
    const id = `fault-${this.#added}`;
    this.#faults.set(id, { plan, matched: 0, struck: 0 });
    return id;
  }

  /** Whether a fault had this id. */
  remove(id: string): boolean {
    return this.#faults.delete(id);
  }

  clear(): void {
    this.#faults.clear();
  }

  reports(): readonly FaultReport[] {
    return [...this.#faults].map(([id, { plan, matched, struck }]) => ({ id, plan, matched, struck }));
  }

  /** Counts and returns the faults that strike this request, in the order in which they were added. */
  strike(target: Target): readonly Strike[] {
    const strikes: Strike[] = [];
    for (const [id, fault] of this.#faults) {
      if (!matches(fault.plan, target)) continue;
      fault.matched += 1;
      const { skip = 0, times = 1, does } = fault.plan;
      if (fault.matched <= skip || (times !== "always" && fault.struck >= times)) continue;
      fault.struck += 1;
      strikes.push({ id, does, count: fault.struck });
    }
    return strikes;
  }
}

const LISTS: readonly Operation[] = ["received", "sent", "sent-legacy"];

function matches({ on, transfer, file, fromPage = 0, does }: FaultPlan, target: Target): boolean {
  if (target.page < fromPage) return false;
  if (on !== undefined && on !== target.operation) return false;
  if (transfer !== undefined && !target.transfers.includes(transfer)) return false;
  if (file !== undefined && file !== target.file) return false;
  if (does.kind === "range") return target.hasRange;
  const isAboutLists = does.kind === "shift" || does.kind === "repeat" || does.kind === "endless";
  return !isAboutLists || LISTS.includes(target.operation);
}
