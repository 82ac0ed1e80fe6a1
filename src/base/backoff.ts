/** How long to wait before trying again: longer each time, never the same for everybody. */

const FIRST_MS = 5_000;
const LONGEST_MS = 60 * 60 * 1000;
const JITTER = 0.2;

/** `attempt` is counted from 1; `random` is between 0 and 1. */
export function backoffMs(attempt: number, random: number, firstMs: number = FIRST_MS): number {
  const base = Math.min(firstMs * 2 ** Math.min(attempt - 1, 30), LONGEST_MS);
  return Math.round(base * (1 - JITTER + 2 * JITTER * random));
}
