/** Decides whether an expected transfer is overdue. Pure. */
import { lastTimeOf } from "../base/timetable.ts";
import type { Expectation } from "../model/mailbox.ts";

/**
 * The facts about one expectation, in milliseconds since the epoch, 0 for never. `sinceMs` only falls, the others only
 * rise, and none is in the future. So the facts of two processes can be merged in any order.
 */
export interface Known {
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
export function findOverdue(rule: Expectation, known: Known, asOfMs: number): number | undefined {
  const dueMs = lastTimeOf(rule.by, asOfMs);
  const fromMs = rule.withinMs === undefined ? lastTimeOf(rule.by, dueMs - 1) : dueMs - rule.withinMs;
  // Arrivals before the expectation was configured are not noted.
  if (fromMs < known.sinceMs) return undefined;
  return known.arrivedMs > fromMs ? undefined : dueMs;
}

/** The reports due now, and the facts after them. A later missed deadline replaces an earlier one. */
export function judge(
  rule: Expectation,
  known: Known,
  asOfMs: number,
): { readonly known: Known; readonly cleared: number | undefined; readonly missed: number | undefined } {
  const isMissing = known.missedMs > known.clearedMs;
  const cleared =
    isMissing && findOverdue(rule, known, known.missedMs) === undefined ? known.missedMs : undefined;
  const overdue = findOverdue(rule, known, asOfMs);
  const missed = overdue !== undefined && overdue > known.missedMs ? overdue : undefined;
  return {
    cleared,
    missed,
    known: {
      ...known,
      clearedMs: cleared ?? known.clearedMs,
      missedMs: missed ?? known.missedMs,
    },
  };
}

export function mergeKnown(a: Known, b: Known): Known {
  return {
    sinceMs: Math.min(a.sinceMs, b.sinceMs),
    arrivedMs: Math.max(a.arrivedMs, b.arrivedMs),
    missedMs: Math.max(a.missedMs, b.missedMs),
    clearedMs: Math.max(a.clearedMs, b.clearedMs),
  };
}

/** A clock that was ahead may have noted future times: nothing would be reported until then. */
export function withoutFuture(known: Known, nowMs: number): Known {
  return {
    sinceMs: Math.min(known.sinceMs, nowMs),
    arrivedMs: Math.min(known.arrivedMs, nowMs),
    missedMs: Math.min(known.missedMs, nowMs),
    clearedMs: Math.min(known.clearedMs, nowMs),
  };
}
