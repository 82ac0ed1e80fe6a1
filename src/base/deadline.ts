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

export class Deadline {
  readonly #over = new AbortController();
  readonly #total: Timer;
  readonly #stall: Timer;

  constructor({ stallMs, totalMs }: DeadlineLimits) {
    this.#total = setTimeout(() => this.#over.abort(`not done after ${inWords(totalMs)}`), totalMs);
    this.#stall = setTimeout(() => this.#over.abort(`no progress for ${inWords(stallMs)}`), stallMs);
  }

  /** Aborts when the deadline has passed, with a reason for people. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  progress(): void {
    this.#stall.refresh();
  }

  /** Called when the work has ended. */
  close(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#stall);
  }
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
