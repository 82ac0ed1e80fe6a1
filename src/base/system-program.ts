/** Runs a program: without a shell, in its own process group, with an explicit environment. */
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { OUTPUT_BYTES } from "./bounds.ts";

/** How long to wait for the last output if a child that outlives the command holds the pipe open. */
const DRAIN_MS = 500;
/** A timer that does not keep the process alive. */
const UNREF = { ref: false };

export interface ProgramStart {
  readonly argv: readonly [string, ...string[]];
  /** Its whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Ends all processes of its group when the program has ended. */
  readonly endsGroup?: boolean;
  /** How many bytes of the start of its standard output are kept; 2 KiB by default. */
  readonly startBytes?: number;
}

export interface ProgramEnd {
  /** Missing for a program that could not be started, was ended by a signal, or took too long. */
  readonly exitCode: number | undefined;
  /** Why it failed, such as "it ended with exit code 2". Missing on success. */
  readonly why: string | undefined;
  /** The last lines of its output. */
  readonly output: string;
  /** The start of its standard output. */
  readonly stdout: Buffer;
  /** The first line that it wrote to each stream; empty for none. */
  readonly firstLine: Readonly<Record<"stdout" | "stderr", string>>;
}

/** On the signal or after its timeout, the process group gets SIGTERM, and SIGKILL `killMs` later. */
export async function runChild(
  { argv: [program, ...args], env, timeoutMs, endsGroup = false, startBytes = OUTPUT_BYTES }: ProgramStart,
  killMs: number,
  signal: AbortSignal,
): Promise<ProgramEnd> {
  const [all, stdout, stderr] = [new Output(OUTPUT_BYTES), new Output(startBytes), new Output(OUTPUT_BYTES)];
  const endWith = (why: string | undefined, exitCode?: number): ProgramEnd => {
    const firstLine = { stdout: stdout.firstLine(), stderr: stderr.firstLine() };
    return { exitCode, why, output: all.end(), stdout: stdout.start, firstLine };
  };
  let child: ChildProcess;
  try {
    const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
    // Some programs load code from the folder in which they run, so it must hold no file that a sender has named.
    child = spawn(program, args, { cwd: "/", env, detached: true, stdio });
  } catch {
    // An argument that cannot be passed on, such as one with a NUL.
    return endWith("it could not be started");
  }
  const streams = [
    [child.stdout, stdout],
    [child.stderr, stderr],
  ] as const;
  for (const [stream, own] of streams) {
    stream?.on("data", (chunk: Buffer) => {
      all.add(chunk);
      own.add(chunk);
    });
  }
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const ended = new Promise<readonly [why: string | undefined, exitCode?: number]>((resolve) => {
    child.once("error", (error) => resolve([`it ${describeStartFailure(error)}`]));
    child.once("exit", (code, killedBy) => {
      if (code === null) resolve([`it was ended by ${killedBy}`]);
      else resolve([code === 0 ? undefined : `it ended with exit code ${code}`, code]);
    });
  });
  const whyStopped = await endInTime(child, ended, timeoutMs, killMs, signal);
  const [why, exitCode] = await ended;
  if (endsGroup) signalGroup(child.pid, "SIGKILL");
  await Promise.race([closed, pause(DRAIN_MS, undefined, UNREF)]);
  for (const [stream] of streams) stream?.destroy();
  return whyStopped === undefined ? endWith(why, exitCode) : endWith(whyStopped);
}

/** Resolves when the command has ended. Returns why it was stopped; `undefined` if it ended by itself. */
async function endInTime(
  child: ChildProcess,
  ended: Promise<unknown>,
  timeoutMs: number,
  killMs: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const timer = new AbortController();
  const stop = AbortSignal.any([signal, timer.signal]);
  const endedByItself = await Promise.race([
    ended.then(() => true),
    // Only the signal rejects it.
    pause(timeoutMs, false, { signal: stop }).catch(() => false),
  ]);
  timer.abort();
  if (endedByItself) return undefined;
  signalGroup(child.pid, "SIGTERM");
  await Promise.race([ended, pause(killMs, undefined, UNREF)]);
  // The command may have ended, and its children may live on.
  signalGroup(child.pid, "SIGKILL");
  await ended;
  return signal.aborted ? "it was stopped" : `it took longer than ${timeoutMs / 1000} s`;
}

/** Does nothing if the group has ended already. */
export function signalGroup(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // No such group.
  }
}

/** Why a program could not be started: the end of a sentence about it. */
export function describeStartFailure(error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT") return "was not found";
  if (error.code !== "EACCES") return `could not be started (${error.code})`;
  // A name is looked for in PATH, where a folder that this user may not enter leads to the same error.
  const isPath = error.path?.includes("/") ?? false;
  return isPath ? "may not be run by this user" : "was not found in PATH, or may not be run by this user";
}

/** Keeps the start and the end of an output of any length. */
class Output {
  readonly #startBytes: number;
  #start = Buffer.alloc(0);
  #end = Buffer.alloc(0);
  #bytes = 0;

  constructor(startBytes: number) {
    this.#startBytes = startBytes;
  }

  get start(): Buffer {
    return this.#start;
  }

  add(chunk: Buffer): void {
    this.#bytes += chunk.byteLength;
    const missing = this.#startBytes - this.#start.byteLength;
    if (missing > 0) this.#start = Buffer.concat([this.#start, chunk.subarray(0, missing)]);
    this.#end = Buffer.concat([this.#end, chunk.subarray(-OUTPUT_BYTES)]).subarray(-OUTPUT_BYTES);
  }

  firstLine(): string {
    const [line = ""] = printable(this.#start).split("\n", 1);
    return line;
  }

  end(): string {
    // Part of a line may be part of a secret, which would not be recognised.
    const isCut = this.#bytes > OUTPUT_BYTES;
    return printable(isCut ? this.#end.subarray(this.#end.indexOf("\n") + 1) : this.#end);
  }
}

/** Keeps line breaks and tabs. Other control, format and line-separator characters are replaced. */
function printable(bytes: Buffer): string {
  return bytes
    .toString()
    .replace(/[^\P{Cc}\n\t]|[\p{Cf}\u2028\u2029]/gu, "\ufffd")
    .trim();
}
