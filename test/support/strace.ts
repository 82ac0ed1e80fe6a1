/** Traces system calls of one thread of a running process with strace, and makes some of them fail. */
import { once } from "node:events";
import { findProgram } from "./debian.ts";
import { startCommand } from "./program.ts";

export interface TraceOptions {
  /** Names of system calls, separated by commas, with a question mark before names that some machines lack. */
  readonly calls: string;
  /** Trace only calls on exactly these paths, or on files opened by them. */
  readonly paths?: readonly string[];
  /**
   * `when` in strace's syntax: `5` the fifth call, `3+3` every third, `7+` all from the seventh on, `2..9+2` every second up
   * to the ninth. Each name is counted separately.
   */
  readonly fail?: { readonly error: string; readonly when: string };
}

export interface Tracing {
  /** Detaches, and returns one line per call. */
  stop(): Promise<string[]>;
}

/** Resolves when strace is attached. */
export async function startTracing(thread: number, options: TraceOptions): Promise<Tracing> {
  const strace = await findProgram("strace", ["strace", "libunwind8"]);
  const { calls, paths = [], fail } = options;
  const args = ["-y", "-p", String(thread), "-e", `trace=${calls}`, ...paths.flatMap((path) => ["-P", path])];
  if (fail !== undefined) args.push("-e", `inject=${calls}:error=${fail.error}:when=${fail.when}`);
  const child = startCommand(strace.path, args, { env: strace.env });
  const { stderr } = child;
  if (stderr === null) throw new Error("no pipe");
  const ended = once(child, "close");
  let output = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  while (!output.includes(" attached\n")) {
    const end = await Promise.race([once(stderr, "data").then(() => undefined), ended]);
    if (end === undefined) continue;
    throw new Error(`strace cannot attach, which needs root or CAP_SYS_PTRACE: ${output}`);
  }
  return {
    async stop() {
      child.kill("SIGTERM");
      await ended;
      return output.split("\n").filter((line) => /^\w+\(/.test(line));
    },
  };
}
