/** Prompts on the terminal, and secrets from files and standard input. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { Fault, systemCode } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import { type Context, invalid } from "./command.ts";
import { printable } from "./printing.ts";

/** Whether standard input and standard error are a terminal. */
export function canAsk({ stdin, stderr }: Context): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}

/** Reads a line without showing it; `undefined` without a terminal, and for an empty line. */
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

/** Reads a line; `preset` for an empty one. Throws `STOPPED` on Ctrl-D. */
export async function ask(context: Context, question: string, preset = ""): Promise<string> {
  const shown = preset === "" ? question : `${question} [${printable(preset)}]`;
  const typed = await readLine(context, `${shown}: `, context.stderr);
  if (typed === undefined) throw new Fault("STOPPED");
  return typed.trim() || preset;
}

/** Repeats the question until the answer is yes or no. */
export async function askYesNo(context: Context, question: string, preset: boolean): Promise<boolean> {
  for (;;) {
    const answer = (await ask(context, `${question} (${preset ? "Y/n" : "y/N"})`)).toLowerCase();
    if (answer === "") return preset;
    if (["y", "yes", "n", "no"].includes(answer)) return answer.startsWith("y");
  }
}

/** Like `readSecret`. An unusable text is a `PASSWORD_UNUSABLE`: it was not sent, and costs no attempt. */
export function readPassword(context: Context, path: string | undefined): Promise<Secret | undefined> {
  return readSecret(
    context,
    path,
    (detail, cause) => new Fault("PASSWORD_UNUSABLE", { detail: `${detail}, and nothing was sent`, cause }),
  );
}

/** The text of a file, or of standard input for `-`, without the final newline that editors add. */
export async function readSecret(
  context: Context,
  path: string | undefined,
  refuse = invalid,
): Promise<Secret | undefined> {
  if (path === undefined) return undefined;
  try {
    if (path === "-") return parseSecret(await buffer(context.stdin), "standard input", refuse);
    const secret = parseSecret(await readFile(path), path, refuse);
    if (secret.reveal() === "") throw invalid(`${resolve(path)} is empty: write the secret into it`);
    return secret;
  } catch (cause) {
    if (cause instanceof Fault) throw cause;
    throw invalid(`${resolve(path)} ${describeUnreadable(cause)}`, cause);
  }
}

function describeUnreadable(cause: unknown): string {
  const code = systemCode(cause);
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist";
  if (code === "EISDIR") return "is a folder: name a file";
  return `cannot be read (${code || "unknown reason"})`;
}

/** One line of UTF-8. Anything else is a mistake that could cost a password attempt. */
function parseSecret(content: Uint8Array, where: string, refuse: typeof invalid): Secret {
  let line: string;
  try {
    line = new TextDecoder("utf-8", { fatal: true }).decode(content).replace(/\r?\n$/, "");
  } catch (cause) {
    throw refuse(`${where} is not UTF-8 text`, cause);
  }
  if (/\p{Cc}/u.test(line)) throw refuse(`${where} has several lines, or a control character`);
  return new Secret(line);
}

/** `undefined` on Ctrl-D. */
async function readLine(
  { stdin, stderr, stop }: Context,
  question: string,
  output: NodeJS.WritableStream,
): Promise<string | undefined> {
  const lines = createInterface({ input: stdin, output, terminal: true, historySize: 0 });
  // In this mode Ctrl-C reaches readline as a key, not the process as a signal.
  let isInterrupted = false;
  lines.on("SIGINT", () => {
    isInterrupted = process.kill(process.pid, "SIGINT");
  });
  try {
    // Readline redraws the line at each key, so it needs the question if it echoes the input.
    if (output !== stderr) stderr.write(question);
    return await lines.question(output === stderr ? question : "", { signal: stop });
  } catch (cause) {
    // The input may end before the signal arrives.
    if (stop.aborted || isInterrupted) throw new Fault("STOPPED", { cause });
    return undefined;
  } finally {
    lines.close();
  }
}
