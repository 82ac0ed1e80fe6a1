/** How long a folder was kept, by a clock that may be wrong: a removed folder does not come back. */
import type { Entry } from "./entry.ts";

/** Corrections of a clock that are not a jump. */
const TOLERANCE_MS = 60_000;
/** From the look that finds a folder old to the one that believes it: this part of its time, up to a maximum. */
const CONFIRM = { part: 1 / 100, mostMs: 3_600_000 };

export interface Moment {
  readonly atMs: number;
  /** Since the machine started. */
  readonly uptimeMs: number;
  readonly isClockRight: boolean;
}

export function isOlder(since: string | undefined, thanMs: number | undefined, nowMs: number): boolean {
  return since !== undefined && thanMs !== undefined && nowMs - Date.parse(since) >= thanMs;
}

/**
 * Pure. `isOver`: an earlier look found the folder old too, and the clock has kept pace with the machine since.
 * `foundOld`: to be stored for the next look.
 */
export function judgeAge(
  foundOld: Entry["foundOld"],
  since: string | undefined,
  keptMs: number | undefined,
  { atMs, uptimeMs, isClockRight }: Moment,
): { readonly foundOld: Entry["foundOld"]; readonly isOver: boolean } {
  if (!isClockRight) return { foundOld, isOver: false };
  if (keptMs === undefined || !isOlder(since, keptMs, atMs)) return { foundOld: undefined, isOver: false };
  const upMs = uptimeMs - (foundOld?.uptimeMs ?? 0);
  const isEven = foundOld !== undefined && Math.abs(atMs - foundOld.atMs - upMs) <= TOLERANCE_MS;
  if (!isEven || upMs < 0) return { foundOld: { atMs, uptimeMs }, isOver: false };
  return { foundOld, isOver: upMs >= Math.min(keptMs * CONFIRM.part, CONFIRM.mostMs) };
}
