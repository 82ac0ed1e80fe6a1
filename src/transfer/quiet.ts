/** Quiet hours: no download starts during them, unless too little time would be left before the transfer expires. */
import { isWithin, nextChange, type Timetable } from "../base/timetable.ts";

/** From the end of quiet hours to the expiry: enough for the download, and a failure or two. */
const MIN_TIME_LEFT_MS = 6 * 60 * 60_000;

/** The end of the quiet hours that put a download off; `undefined` if it may begin now. */
export function quietUntil(
  quiet: Timetable | undefined,
  expiresMs: number,
  nowMs: number,
): number | undefined {
  if (quiet === undefined || !isWithin(quiet, nowMs)) return undefined;
  const endMs = nextChange(quiet, nowMs) ?? Number.POSITIVE_INFINITY;
  return expiresMs < endMs + MIN_TIME_LEFT_MS ? undefined : endMs;
}
