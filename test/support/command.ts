/** Runs a command in this process, which is much faster than a new one. Exit codes need a process. */
import { Writable } from "node:stream";
import type { Context, Outcome } from "../../src/cli/command.ts";
import { createProgram } from "../../src/cli/program.ts";

export interface Called {
  readonly outcome: Outcome;
  readonly stdout: string;
  readonly stderr: string;
}

/** Throws the command's error. There is no terminal, and both outputs are pipes; `given` replaces parts of that. */
export async function callCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  given: Partial<Context> = {},
): Promise<Called> {
  const [stdout, stderr] = [new TextWriter(), new TextWriter()];
  const context = {
    env: { PATH: process.env["PATH"], ...env },
    stdin: { isTTY: false },
    stdout,
    stderr,
    stop: new AbortController().signal,
    ...given,
  } as unknown as Context;
  let outcome: Outcome = "fine";
  const program = createProgram(async (work) => {
    outcome = await work(context);
  });
  await program.parseAsync([...args], { from: "user" });
  return { outcome, stdout: stdout.text, stderr: stderr.text };
}

class TextWriter extends Writable {
  readonly isTTY = false;
  text = "";

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}
