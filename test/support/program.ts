/** The program as users run it: a process with output, exit code and, if needed, a terminal. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { chmod, chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { expect, inject, onTestFinished } from "vitest";
import { ROOT } from "./root.ts";

const BUILT = inject("builtProgram");

/** Of the program as it is installed. */
export const LAUNCHER = join(BUILT, "bin/inlet.cjs");

/** Hundreds of processes start the same programs: the first one compiles for the others. */
const NODE_COMPILE_CACHE = join(BUILT, "compiled");

export interface Finished {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
  /** On a terminal: the input is typed after this was printed. */
  readonly prompt?: string;
  /** The user and group to run as, if not the test's own. */
  readonly user?: number;
}

/** Killed at the end of the test if it still runs. */
export function startProgram(args: readonly string[], options: RunOptions = {}): ChildProcess {
  return startCommand(process.execPath, [LAUNCHER, ...args], options);
}

/** Commands that make the process their own. */
const WHOLE = new Set(["run", "demo"]);
let isInside = false;

/** In this process if nothing depends on its own one, which saves most of the time. */
export async function runProgram(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const { cwd = tmpdir(), env, input = "", user } = options;
  if (!isInside && user === undefined && !WHOLE.has(args[0] ?? "")) {
    const { runCommandHere } = await import("./command.ts");
    const before = process.cwd();
    isInside = true;
    process.chdir(cwd);
    return runCommandHere(args, { ...usualEnv(), ...env }, [Buffer.from(input)]).finally(() => {
      process.chdir(before);
      isInside = false;
    });
  }
  return finish(startProgram(args, options), input);
}

function usualEnv() {
  const { PATH = "", HOME = "", RUNTIME_DIRECTORY = "" } = process.env;
  return { PATH, HOME, RUNTIME_DIRECTORY };
}

/** What it has printed so far to its standard output. The process of an unread output could not end. */
export function logOf({ stdout, stderr }: ChildProcess): () => string {
  let log = "";
  stdout?.on("data", (chunk) => {
    log += String(chunk);
  });
  stderr?.resume();
  return () => log;
}

/** Ends it as a service manager does, and demands success. */
export async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
}

/** On a pseudo-terminal, which combines both outputs. */
export async function runOnTerminal(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const child = startOnTerminal(args, options);
  if (options.prompt === undefined) return finish(child, options.input);
  await printed(child, options.prompt);
  return finish(child, options.input);
}

/** On a pseudo-terminal: each answer is typed after its question was printed. */
export async function converse(
  args: readonly string[],
  answers: readonly (readonly [question: string, answer: string | (() => string)])[],
  options: RunOptions = {},
): Promise<Finished> {
  const child = startOnTerminal(args, options);
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("no pipes");
  let output = "";
  let answered = 0;
  stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const ended = new Promise<number | null>((done) => child.once("close", (code) => done(code)));
  for (const [question, answer] of answers) {
    await expect.poll(() => output.slice(answered)).toContain(question);
    answered = output.length;
    stdin.write(`${typeof answer === "string" ? answer : answer()}\n`);
  }
  return { exitCode: await ended, stdout: output, stderr: "" };
}

function startOnTerminal(args: readonly string[], options: RunOptions): ChildProcess {
  // Without a shell in between, which could change the exit code.
  const words = [process.execPath, LAUNCHER, ...args]
    .map((word) => `'${word.replaceAll("'", "'\\''")}'`)
    .join(" ");
  return startCommand("script", ["-qec", `exec ${words}`, "/dev/null"], options);
}

/** `child.ts`, built like the product. */
export const CHILD = join(BUILT, "children/child.js");

/** A daemon in its own process. `task`: the argument of `child.ts`. */
export function startChild(task: object, options: RunOptions = {}): ChildProcess {
  return startCommand(process.execPath, [CHILD, JSON.stringify(task)], options);
}

/** npm with this machine's registry, cache and certificates, which come from the environment. */
export async function runNpm(args: readonly string[], cwd: string): Promise<Finished> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("npm_")));
  return runCommand("npm", args, { cwd, env: env as Record<string, string> });
}

/** Runs any other program. */
export async function runCommand(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Finished> {
  return finish(startCommand(command, args, options), options.input);
}

/** What is created in it belongs to this group. */
export async function makeGroupFolder(group: number): Promise<string> {
  const folder = await makeFolder();
  await chown(folder, 0, group);
  await chmod(folder, 0o2750);
  return folder;
}

/** On another file system than `makeFolder`. */
export async function makeFolderElsewhere(): Promise<string> {
  const { dev } = statSync(tmpdir());
  const isOther = (path: string) => existsSync(path) && statSync(path).dev !== dev;
  const parent = ["/dev/shm", "/var/tmp", join(ROOT, "node_modules")].find(isOther);
  if (parent === undefined) throw new Error(`no other file system than that of ${tmpdir()} was found`);
  return makeFolder(parent);
}

/** A folder that is removed at the end of the test. */
export async function makeFolder(parent = tmpdir()): Promise<string> {
  const folder = await mkdtemp(join(parent, "inlet-test-"));
  // Late writes may still arrive during the removal.
  const remove = () => rm(folder, { recursive: true, force: true, maxRetries: 5 });
  onTestFinished(() =>
    remove().catch(async () => {
      // Content that waits for its check is read-only.
      await promisify(execFile)("chmod", ["-R", "u+rwX", folder]);
      await remove();
    }),
  );
  return folder;
}

/** Waits for a prompt, and puts the output back for the next reader. */
async function printed(child: ChildProcess, prompt: string): Promise<void> {
  const { stdout } = child;
  if (stdout === null) throw new Error("no pipe");
  let seen = Buffer.alloc(0);
  while (!seen.includes(prompt)) {
    await once(stdout, "readable");
    seen = Buffer.concat([seen, stdout.read() ?? Buffer.alloc(0)]);
  }
  stdout.unshift(seen);
}

/** Any other program. Killed at the end of the test if it still runs. */
export function startCommand(
  command: string,
  args: readonly string[],
  { env, cwd, user }: RunOptions = {},
): ChildProcess {
  const child = spawn(command, args, {
    cwd: cwd ?? tmpdir(),
    env: { ...usualEnv(), NODE_COMPILE_CACHE, ...env },
    stdio: ["pipe", "pipe", "pipe"],
    ...(user === undefined ? {} : { uid: user, gid: user }),
  });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((done) => child.once("exit", done));
    child.kill("SIGKILL");
    await gone;
  });
  return child;
}

export async function finish(child: ChildProcess, input = ""): Promise<Finished> {
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) throw new Error("no pipes");
  stdin.on("error", () => {}).end(input);
  const ended = new Promise<number | null>((done, failed) => {
    child.once("close", (code) => done(code)).once("error", failed);
  });
  const [out, err, exitCode] = await Promise.all([text(stdout), text(stderr), ended]);
  return { exitCode, stdout: out, stderr: err };
}
