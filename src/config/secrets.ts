/** Reads secrets from a file, an environment variable, a systemd credential, a command, or plain text. */
import { isUtf8 } from "node:buffer";
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { basename, join } from "node:path";
import { Fault } from "../base/faults.ts";
import { variableText } from "../base/process.ts";
import { describeWrongPassword, Secret, type SecretSource } from "../base/secret.ts";
import { describeStartFailure, signalGroup } from "../base/system-program.ts";
import type { PasswordCommand } from "../model/mailbox.ts";
import { codeOf, type Environment } from "./draft.ts";

/** Where the text of a secret is. */
export interface SecretPlace {
  /** For messages: `file /run/secrets/supplier`. */
  readonly described: string;
  /** Reads it again each time. Throws `Unreadable`. */
  readonly read: (signal: AbortSignal) => Promise<string>;
}

/** Describes what is wrong with a secret without quoting it; `undefined` for a valid one. */
export type SecretRule = (secret: Secret) => string | undefined;

type Argv = readonly [string, ...string[]];

/** Why a secret cannot be read, without quoting it: the end of a sentence. */
class Unreadable extends Error {}

const MAX_SECRET_BYTES = 64 * 1024;
const COMMAND_TIMEOUT_MS = 30_000;

/** The only variables of the daemon that a command receives: others may hold secrets. */
const PASSED_ON: ReadonlySet<string> = new Set(["PATH", "HOME", "LANG", "TZ"]);

/** The daemon's part of the environment of a command. */
export function environmentFor(env: Environment): Record<string, string> {
  const passed = Object.entries(env).filter(([name]) => PASSED_ON.has(name));
  return Object.fromEntries(passed.filter((it): it is [string, string] => it[1] !== undefined));
}

/** It throws `SECRET_UNREADABLE`, or `STOPPED` after an abort. */
export function openSecret({ described, read }: SecretPlace, rule?: SecretRule): SecretSource {
  return { described, read: (signal) => explained(described, checked(read(signal), rule), signal) };
}

/** Each `ask` runs the command, with the transfer in variables. A command that prints nothing knows no password. */
export function openPasswordCommand(argv: Argv, env: Environment): PasswordCommand {
  const { described } = fromCommand(argv, env);
  return {
    described,
    program: argv[0],
    ask({ mailbox, sender, trackingId, subject }, signal) {
      const variables = {
        ...environmentFor(env),
        INLET_MAILBOX: variableText(mailbox),
        INLET_SENDER: variableText(sender),
        INLET_TRACKING_ID: variableText(trackingId),
        INLET_SUBJECT: variableText(subject),
      };
      const ask = async () => {
        const bytes = await runCommand(argv, variables, COMMAND_TIMEOUT_MS, signal);
        if (/^\s*$/.test(bytes.toString())) return undefined;
        return checked(decode(bytes, COMMAND_WORDS), describeWrongPassword);
      };
      return explained(described, ask(), signal);
    },
  };
}

export function inFile(path: string): SecretPlace {
  return { described: `file ${path}`, read: async () => decode(await readBytes(path), FILE_WORDS) };
}

export function inVariable(name: string, env: Environment): SecretPlace {
  return {
    described: `variable ${name}`,
    async read() {
      const text = env[name];
      if (!text) throw new Unreadable(text === undefined ? "is not set" : FILE_WORDS.empty);
      return text;
    },
  };
}

/** A file that systemd provides. */
export function inCredential(name: string, { CREDENTIALS_DIRECTORY: folder }: Environment): SecretPlace {
  return {
    described: `credential ${name}`,
    async read() {
      if (!folder) {
        throw new Unreadable(
          "cannot be found, because CREDENTIALS_DIRECTORY is not set: systemd passes credentials only to its units. Run the command as root with --unit inlet, or use { file: … }",
        );
      }
      const path = join(folder, name);
      return decode(await readBytes(path, `(${path}) `), FILE_WORDS);
    },
  };
}

/** Only the program is named: its arguments may hold secrets. */
export function fromCommand(
  argv: Argv,
  env: Environment,
  timeoutMs: number = COMMAND_TIMEOUT_MS,
): SecretPlace {
  return {
    described: `command ${basename(argv[0])}`,
    read: async (signal) =>
      decode(await runCommand(argv, environmentFor(env), timeoutMs, signal), COMMAND_WORDS),
  };
}

async function checked(text: string | Promise<string>, rule?: SecretRule): Promise<Secret> {
  const secret = new Secret(await text);
  const why = rule?.(secret);
  if (why !== undefined) throw new Unreadable(why);
  return secret;
}

async function explained<Result>(
  described: string,
  reading: Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  try {
    const result = await reading;
    if (!signal.aborted) return result;
    throw new Fault("STOPPED");
  } catch (error) {
    if (signal.aborted) throw new Fault("STOPPED");
    if (!(error instanceof Unreadable)) throw error;
    throw new Fault("SECRET_UNREADABLE", { detail: `${described} ${error.message}`, cause: error.cause });
  }
}

/** Reads regular files only: a pipe without a writer would block forever. `prefix`: for messages. */
async function readBytes(path: string, prefix = ""): Promise<Buffer> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw new Unreadable("is not a regular file");
    const buffer = Buffer.alloc(MAX_SECRET_BYTES + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length === buffer.length) throw new Unreadable("is larger than 64 KiB");
    return buffer.subarray(0, length);
  } catch (error) {
    const why = error instanceof Unreadable ? error.message : describeSystemError(error);
    throw new Unreadable(`${prefix}${why}`, error instanceof Unreadable ? {} : { cause: error });
  }
}

function describeSystemError(error: unknown): string {
  const code = codeOf(error);
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist";
  return code === "EACCES" ? "may not be read by this user" : `cannot be read (${code})`;
}

const FILE_WORDS = { empty: "is empty", garbled: "is not UTF-8 text" };
const COMMAND_WORDS = { empty: "printed nothing", garbled: "did not print UTF-8 text" };

/** Drops the final newline that an editor or `echo` adds. */
function decode(bytes: Buffer, words: typeof FILE_WORDS): string {
  if (!isUtf8(bytes)) throw new Unreadable(words.garbled);
  const text = new TextDecoder().decode(bytes).replace(/\r?\n$/, "");
  if (text === "") throw new Unreadable(words.empty);
  return text;
}

/**
 * Runs a program without a shell, and returns its standard output. Standard error is dropped, because it may quote a
 * secret. The program has its own process group, so that its children end with it.
 */
async function runCommand(
  argv: Argv,
  env: Environment,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Buffer> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const child = start(argv, env);
  const chunks: Buffer[] = [];
  let length = 0;

  const giveUp = (why: string): void => {
    child.stdout.destroy();
    signalGroup(child.pid, "SIGKILL");
    reject(new Unreadable(why));
  };
  const stop = (): void => giveUp("was stopped");
  const timer = setTimeout(() => giveUp(`took longer than ${timeoutMs / 1000} s`), timeoutMs);
  signal.addEventListener("abort", stop, { once: true });

  child.stdout.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > MAX_SECRET_BYTES) giveUp("printed more than 64 KiB");
    else chunks.push(chunk);
  });
  child.once("error", (error) => reject(new Unreadable(describeStartFailure(error))));
  child.once("close", (code, killedBy) => {
    const why = killedBy === null ? `ended with exit code ${code}` : `was killed by ${killedBy}`;
    if (code === 0) resolve(Buffer.concat(chunks));
    else reject(new Unreadable(why));
  });
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  });
}

function start([program, ...args]: Argv, env: Environment) {
  try {
    return spawn(program, args, { env, detached: true, stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    // For example, an argument contains a NUL. The message would quote it.
    throw new Unreadable("could not be started");
  }
}
