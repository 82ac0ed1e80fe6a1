/** Questions to the person at the terminal. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import type { Context } from "./context.ts";
import { printable } from "./printing.ts";

/** Whether there is somebody who could answer. */
export function canAsk({ stdin, stderr }: Context): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}

/** Reads a line without showing it; `undefined` where nobody can be asked, or nothing was typed. */
export async function askHidden(context: Context, question: string): Promise<Secret | undefined> {
  if (!canAsk(context)) return undefined;
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  try {
    const typed = await readLine(context, question, nowhere);
    return typed ? new Secret(typed) : undefined;
  } finally {
    context.stderr.write("\n");
  }
}

/** Reads a line; nothing typed is `usual`. Throws `STOPPED` where the person ends it with Ctrl-D. */
export async function ask(context: Context, question: string, usual = ""): Promise<string> {
  const shown = usual === "" ? question : `${question} [${printable(usual)}]`;
  const typed = await readLine(context, `${shown}: `, context.stderr);
  if (typed === undefined) throw new Fault("STOPPED");
  return typed.trim() || usual;
}

/** Asks until the answer is one of the two. */
export async function askYesNo(context: Context, question: string, usual: boolean): Promise<boolean> {
  for (;;) {
    const answer = (await ask(context, `${question} (${usual ? "Y/n" : "y/N"})`)).toLowerCase();
    if (answer === "") return usual;
    if (["y", "yes", "n", "no"].includes(answer)) return answer.startsWith("y");
  }
}

/** `undefined` where it was ended by Ctrl-D. */
async function readLine(
  { stdin, stderr, stop }: Context,
  question: string,
  output: NodeJS.WritableStream,
): Promise<string | undefined> {
  const lines = createInterface({ input: stdin, output, terminal: true, historySize: 0 });
  // In this mode Ctrl-C reaches readline as a key, not the process as a signal.
  lines.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  try {
    // What is typed elsewhere must not move the question away, so readline knows it where it shows what is typed.
    if (output !== stderr) stderr.write(question);
    return await lines.question(output === stderr ? question : "", { signal: stop });
  } catch (cause) {
    if (stop.aborted) throw new Fault("STOPPED", { cause });
    return undefined;
  } finally {
    lines.close();
  }
}
