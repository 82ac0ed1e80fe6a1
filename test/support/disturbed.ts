/** Daemons in their own processes that are killed, or cut off from their disk, after one of their durable steps. */
import type { CrashTask } from "./daemon-task.ts";
import { type Finished, finish, startChild } from "./program.ts";

export interface DisturbedTask extends CrashTask {
  readonly user?: number;
  /** The name of the durable step after which it kills itself. */
  readonly crashAt?: string;
  /** Before that it runs this command, which cuts the disk off. */
  readonly unplug?: readonly string[];
}

/** Its exit code is null if it was killed at its step. */
export function runChild(task: DisturbedTask): Promise<Finished> {
  return finish(startChild({ once: task }));
}
