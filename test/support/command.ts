/** Runs a command in this process, which is much faster than a new one. */
import { Readable, Writable } from "node:stream";
import { CommanderError } from "commander";
import { onTestFinished } from "vitest";
import { asFault } from "../../src/base/faults.ts";
import { type Context, EXIT_CODES, type Outcome, outcomeOfFault } from "../../src/cli/command.ts";
import { formatFailure } from "../../src/cli/printing.ts";
import { createProgram } from "../../src/cli/program.ts";
import { explainPermission } from "../../src/host/permission.ts";
import type { TransferView } from "../../src/model/views.ts";
import type { Finished } from "./program.ts";

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
    env: { PATH: process.env["PATH"], RUNTIME_DIRECTORY: process.env["RUNTIME_DIRECTORY"], ...env },
    stdin: { isTTY: false },
    stdout,
    stderr,
    stop: new AbortController().signal,
    ...given,
  } as unknown as Context;
  let outcome: Outcome = "fine";
  const { program } = createProgram(async (work) => {
    outcome = await work(context);
  });
  for (const command of [program, ...program.commands]) {
    command.configureOutput({
      writeOut: (text) => void context.stdout.write(text),
      writeErr: (text) => void context.stderr.write(text),
    });
  }
  await program.parseAsync([...args], { from: "user" });
  return { outcome, stdout: stdout.text, stderr: stderr.text };
}

/** The transfers that `inlet list` shows. */
export async function listJson(config: string, ...options: readonly string[]): Promise<TransferView[]> {
  const { stdout } = await callCommand(["list", "--json", "--config", config, ...options]);
  return stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** A command that runs until it is stopped. */
export interface RunningCommand {
  /** What it has printed so far to its standard output. */
  logged(): string;
  /** As SIGHUP does. */
  reload(): void;
  /** Ends it as SIGTERM does, and demands success. */
  stop(): Promise<void>;
  readonly ended: Promise<unknown>;
}

/** Starts it in this process, until the end of the test. */
export function startCommandHere(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): RunningCommand {
  const stop = new AbortController();
  const stdout = new TextWriter();
  let reload = () => {};
  const onReload = (listener: () => void) => {
    reload = listener;
  };
  const given = { stdout, stop: stop.signal, onReload, onFault() {} } as unknown as Partial<Context>;
  const ended = callCommand(args, env, given);
  // Whoever stops it gets the failure.
  ended.catch(() => {});
  const end = async () => {
    stop.abort();
    await ended;
  };
  onTestFinished(end);
  return { logged: () => stdout.text, reload: () => reload(), stop: end, ended };
}

/** `inlet run` in this process, until the end of the test. */
export function startRun(config: string, env: Readonly<Record<string, string>> = {}): RunningCommand {
  return startCommandHere(["run", "--config", config], env);
}

/** As a process would end. */
export async function runCommandHere(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input: Iterable<Buffer> | AsyncIterable<Buffer>,
): Promise<Finished> {
  const [stdout, stderr] = [new TextWriter(), new TextWriter()];
  const stdin = Readable.from(input);
  const given = { stdin, stdout, stderr, onReload() {}, onFault() {} } as unknown as Partial<Context>;
  const { outcome } = await callCommand(args, env, given).catch(async (error: unknown) => {
    if (error instanceof CommanderError) return { outcome: error.exitCode === 0 ? "fine" : "usage" } as const;
    const fault = await explainPermission(asFault(error));
    stderr.write(formatFailure(fault, args.includes("--json")));
    return { outcome: outcomeOfFault(fault) };
  });
  return { exitCode: EXIT_CODES[outcome].code, stdout: stdout.text, stderr: stderr.text };
}

class TextWriter extends Writable {
  readonly isTTY = false;
  text = "";

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}
