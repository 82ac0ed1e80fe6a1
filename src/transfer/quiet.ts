/** Quiet hours: downloads are not begun in them, unless the transfer might be gone by the time they end. */
import { isWithin, nextChange, type Timetable } from "../base/timetable.ts";

/** What is left of a transfer's life when quiet hours end must be enough to download it, after a failure or two. */
const LEAST_TIME_LEFT_MS = 6 * 60 * 60_000;

/** The end of the quiet hours that put a download off; `undefined` where it may begin now. */
export function quietUntil(
  quiet: Timetable | undefined,
  expiresMs: number,
  nowMs: number,
): number | undefined {
  if (quiet === undefined || !isWithin(quiet, nowMs)) return undefined;
  const endMs = nextChange(quiet, nowMs) ?? Number.POSITIVE_INFINITY;
  return expiresMs < endMs + LEAST_TIME_LEFT_MS ? undefined : endMs;
}
