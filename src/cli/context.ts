/** A command's process: its streams, its environment, and the signal to stop. */
import { once } from "node:events";
import { LONGEST_TIMER_MS } from "../base/deadline.ts";
import type { Fault } from "../base/faults.ts";
import type { Environment } from "../config/draft.ts";
import type { Outcome } from "./exit-codes.ts";

export interface Context {
  readonly env: Environment;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Aborts at the first SIGINT or SIGTERM, and at SIGHUP unless `onReload` was called. */
  readonly stop: AbortSignal;
  /** From now on SIGHUP calls the listener, and does not stop the program. */
  onReload(listener: () => void): void;
  /** From now on a fault that ends the program is passed to `report`, and not printed on standard error. */
  onFault(report: (fault: Fault) => void): void;
}

/** Makes the action of a command: its work gets the context, and then what commander passes. */
export type Run = <Args extends unknown[]>(
  work: (context: Context, ...args: Args) => Promise<Outcome>,
) => (...args: Args) => Promise<void>;

/** Keeps the process alive: a pending `AbortSignal` alone does not. */
export async function untilStopped(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  // Keeps the process alive.
  const alive = setInterval(() => {}, LONGEST_TIMER_MS);
  try {
    await once(stop, "abort");
  } finally {
    clearInterval(alive);
  }
}
