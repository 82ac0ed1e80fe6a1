/** Limits on waiting: a deadline for work that stalls or takes too long, and waits that a stop ends. */

import { Fault } from "./faults.ts";
import { clearTimeout, setTimeout, type Timer } from "./timers.ts";

/** A timer that is set for longer fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface DeadlineLimits {
  /** Without progress. */
  readonly stallMs: number;
  readonly totalMs: number;
}

/** Call `progress` on each progress of the work, and `close` when it has ended. */
export function startDeadline({ stallMs, totalMs }: DeadlineLimits) {
  const over = new AbortController();
  const total = setTimeout(() => over.abort(`not done after ${inWords(totalMs)}`), totalMs);
  const stall = setTimeout(() => over.abort(`no progress for ${inWords(stallMs)}`), stallMs);
  return {
    /** Aborts when a limit has passed, with a reason for people. */
    signal: over.signal,
    progress: () => stall.refresh(),
    close(): void {
      clearTimeout(total);
      clearTimeout(stall);
    },
  };
}

/**
 * Waits for work that may never end, such as a command to a Redis that is away. Throws `STOPPED` if it has not ended
 * `patienceMs` after the stop; the work itself may still happen.
 */
export async function unlessStopped<Result>(
  work: Promise<Result>,
  patienceMs: number,
  signal: AbortSignal,
): Promise<Result> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  let timer: Timer | undefined;
  const onStop = () => {
    timer = setTimeout(() => reject(new Fault("STOPPED")), patienceMs);
  };
  if (signal.aborted) onStop();
  else signal.addEventListener("abort", onStop, { once: true });
  try {
    return await Promise.race([work, stopped]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onStop);
  }
}

/** Resolves when the signal aborts, or at once if it has aborted. */
export async function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

function inWords(ms: number): string {
  return ms < 60_000 ? `${ms / 1000} s` : `${Math.round(ms / 60_000)} min`;
}
