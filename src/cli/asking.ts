/** Questions to the person at the terminal. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import type { Context } from "./context.ts";

/** Reads a line without showing it; `undefined` where nobody can be asked, or nothing was typed. */
export async function askHidden(context: Context, question: string): Promise<Secret | undefined> {
  const { stdin, stderr, stop } = context;
  if (!stdin.isTTY || !stderr.isTTY) return undefined;
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: nowhere, terminal: true, historySize: 0 });
  // In this mode Ctrl-C reaches readline as a key, not the process as a signal.
  lines.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  try {
    stderr.write(question);
    const typed = await lines.question("", { signal: stop });
    return typed === "" ? undefined : new Secret(typed);
  } catch (cause) {
    // Ctrl-C stops the program; Ctrl-D, with nothing typed, is no answer.
    if (stop.aborted) throw new Fault("STOPPED", { cause });
    return undefined;
  } finally {
    stderr.write("\n");
    lines.close();
  }
}
