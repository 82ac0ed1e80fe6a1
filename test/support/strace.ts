/** System calls of one thread of a running process, seen and made to fail at will: strace on the real thing. */
import { once } from "node:events";
import { findProgram } from "./debian.ts";
import { startCommand } from "./program.ts";

export interface TraceOptions {
  /** Names of system calls, separated by commas; a question mark before one that not every machine has. */
  readonly calls: string;
  /** Only calls on these very paths, or on files that were opened by them, are seen and counted. */
  readonly paths?: readonly string[];
  /**
   * `when` as strace has it: `5` the fifth call, `3+3` every third, `7+` all from the seventh on, `2..9+2` every
   * second up to the ninth. Each name is counted by itself.
   */
  readonly fail?: { readonly error: string; readonly when: string };
}

export interface Tracing {
  /** Lets go of the thread, and returns one line per call. */
  stop(): Promise<string[]>;
}

/** When it returns, the thread's next call is seen. */
export async function startTracing(thread: number, options: TraceOptions): Promise<Tracing> {
  const strace = await findProgram("strace", ["strace", "libunwind8"]);
  const { calls, paths = [], fail } = options;
  const args = ["-y", "-p", String(thread), "-e", `trace=${calls}`, ...paths.flatMap((path) => ["-P", path])];
  if (fail !== undefined) args.push("-e", `inject=${calls}:error=${fail.error}:when=${fail.when}`);
  const child = startCommand(strace.path, args, { env: strace.env });
  const { stderr } = child;
  if (stderr === null) throw new Error("no pipe");
  const ended = once(child, "close");
  let told = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    told += text;
  });
  while (!told.includes(" attached\n")) {
    const end = await Promise.race([once(stderr, "data").then(() => undefined), ended]);
    if (end === undefined) continue;
    throw new Error(
      `strace cannot attach to a process here, which root or CAP_SYS_PTRACE is needed for: ${told}`,
    );
  }
  return {
    async stop() {
      child.kill("SIGTERM");
      await ended;
      return told.split("\n").filter((line) => /^\w+\(/.test(line));
    },
  };
}
