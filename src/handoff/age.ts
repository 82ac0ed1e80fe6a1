/** How old a folder is, by a clock that may be wrong: what is deleted because of it does not come back. */
import type { Entry } from "./entry.ts";
import type { HandoffTools } from "./tools.ts";

/** Corrections of a clock that are no jump. */
const TOLERANCE_MS = 60_000;
/** Between the look that finds it old and the one that believes it: so much of its time, and no more than that. */
const PATIENCE = { part: 1 / 100, mostMs: 3_600_000 };

export function isOlder(
  { clock }: HandoffTools,
  since: string | undefined,
  thanMs: number | undefined,
): boolean {
  return since !== undefined && thanMs !== undefined && clock.now() - Date.parse(since) >= thanMs;
}

/**
 * Whether its time is surely over: it was already at an earlier look, and from that one to this the clock went on as the
 * machine did. `entry`: with what the next look has to know, also that of another process.
 */
export function judgeAge(
  tools: HandoffTools,
  entry: Entry,
  since: string | undefined,
  keptMs: number | undefined,
): { readonly entry: Entry; readonly isOver: boolean } {
  const { foundOld } = entry;
  if (keptMs === undefined || !isOlder(tools, since, keptMs)) {
    return { entry: foundOld === undefined ? entry : { ...entry, foundOld: undefined }, isOver: false };
  }
  const now = { atMs: tools.clock.now(), uptimeMs: tools.uptimeMs() };
  const upMs = now.uptimeMs - (foundOld?.uptimeMs ?? 0);
  const isEven = foundOld !== undefined && Math.abs(now.atMs - foundOld.atMs - upMs) <= TOLERANCE_MS;
  if (!isEven || upMs < 0) return { entry: { ...entry, foundOld: now }, isOver: false };
  return { entry, isOver: upMs >= Math.min(keptMs * PATIENCE.part, PATIENCE.mostMs) };
}
