/** Decides whether an expected transfer is overdue. Pure. */
import { lastTimeOf } from "../base/timetable.ts";
import type { Expectation } from "../model/mailbox.ts";

/**
 * The facts about one expectation, in milliseconds since the epoch, 0 for never. `sinceMs` only falls, the others only
 * rise, and none is in the future. So the facts of two processes can be merged in any order.
 */
export interface ExpectationFacts {
  /** When the expectation was first configured here. */
  readonly sinceMs: number;
  /** When the last matching transfer was discovered. */
  readonly arrivedMs: number;
  /** The last deadline that was reported as missed. */
  readonly missedMs: number;
  /** The last missed deadline whose late arrival was reported. */
  readonly clearedMs: number;
}

/** The last deadline up to `asOfMs`, if no transfer has arrived for it, in time or late. */
export function findOverdue(rule: Expectation, facts: ExpectationFacts, asOfMs: number): number | undefined {
  const dueMs = lastTimeOf(rule.by, asOfMs);
  const fromMs = rule.withinMs === undefined ? lastTimeOf(rule.by, dueMs - 1) : dueMs - rule.withinMs;
  // Arrivals before the expectation was configured are not noted.
  if (fromMs < facts.sinceMs) return undefined;
  return facts.arrivedMs > fromMs ? undefined : dueMs;
}

/** The reports due now, and the facts after them. A later missed deadline replaces an earlier one. */
export function judge(rule: Expectation, facts: ExpectationFacts, asOfMs: number) {
  const isMissing = facts.missedMs > facts.clearedMs;
  const cleared =
    isMissing && findOverdue(rule, facts, facts.missedMs) === undefined ? facts.missedMs : undefined;
  const overdue = findOverdue(rule, facts, asOfMs);
  const missed = overdue !== undefined && overdue > facts.missedMs ? overdue : undefined;
  return {
    cleared,
    missed,
    facts: {
      ...facts,
      clearedMs: cleared ?? facts.clearedMs,
      missedMs: missed ?? facts.missedMs,
    },
  };
}

export function mergeFacts(a: ExpectationFacts, b: ExpectationFacts): ExpectationFacts {
  return {
    sinceMs: Math.min(a.sinceMs, b.sinceMs),
    arrivedMs: Math.max(a.arrivedMs, b.arrivedMs),
    missedMs: Math.max(a.missedMs, b.missedMs),
    clearedMs: Math.max(a.clearedMs, b.clearedMs),
  };
}

/** A clock that was ahead may have noted future times: nothing would be reported until then. */
export function withoutFuture(facts: ExpectationFacts, nowMs: number): ExpectationFacts {
  return {
    sinceMs: Math.min(facts.sinceMs, nowMs),
    arrivedMs: Math.min(facts.arrivedMs, nowMs),
    missedMs: Math.min(facts.missedMs, nowMs),
    clearedMs: Math.min(facts.clearedMs, nowMs),
  };
}
