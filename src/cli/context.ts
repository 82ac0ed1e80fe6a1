/** What a command gets from the process that runs it: streams, environment, and the signal to stop. */
import type { Environment } from "../config/draft.ts";

export interface Context {
  readonly env: Environment;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Aborts at the first SIGINT or SIGTERM. */
  readonly stop: AbortSignal;
  /** From now on SIGHUP asks for this, and does not stop the program. */
  onReload(listener: () => void): void;
}

/** How a command ended that did not throw. `usage`: what it was given, or the configuration, has to change. */
export type Outcome = "fine" | "attention" | "failed" | "unreachable" | "usage";

/** How a command's action hands over its work: its outcome becomes the program's. */
export type Run = (work: (context: Context) => Promise<Outcome>) => Promise<void>;
