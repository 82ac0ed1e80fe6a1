/** Whether an expected transfer is overdue, from what is known of it. */
import { lastTimeOf } from "../base/timetable.ts";
import type { Expectation } from "../model/mailbox.ts";

/**
 * What is known of one expectation, in milliseconds since the epoch, 0 for never. But for `sinceMs`, which only ever
 * falls, everything only ever rises, up to now: what two processes know of it can be put together in any order.
 */
export interface Known {
  /** When the expectation was first heard of. */
  readonly sinceMs: number;
  /** When the last transfer that fits was discovered. */
  readonly arrivedMs: number;
  /** The last deadline that was reported as missed. */
  readonly missedMs: number;
  /** The last of those for which it was reported that the transfer came after all. */
  readonly clearedMs: number;
}

/** The last deadline up to `asOfMs`, where nothing has come for it, nor later. */
export function findOverdue(rule: Expectation, known: Known, asOfMs: number): number | undefined {
  const dueMs = lastTimeOf(rule.by, asOfMs);
  const fromMs = rule.withinMs === undefined ? lastTimeOf(rule.by, dueMs - 1) : dueMs - rule.withinMs;
  // What came before the expectation was heard of, nobody has noted.
  if (fromMs < known.sinceMs) return undefined;
  return known.arrivedMs > fromMs ? undefined : dueMs;
}

/** What is reported now, and what is known then. A later deadline that is missed takes the place of an earlier one. */
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

/** A clock that was ahead has noted times that have not come yet: until they had, nothing would be reported. */
export function withoutFuture(known: Known, nowMs: number): Known {
  return {
    sinceMs: Math.min(known.sinceMs, nowMs),
    arrivedMs: Math.min(known.arrivedMs, nowMs),
    missedMs: Math.min(known.missedMs, nowMs),
    clearedMs: Math.min(known.clearedMs, nowMs),
  };
}
