/** Reads secrets from a file, an environment variable, a systemd credential, a command, or plain text. */
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

/** Where a secret is, as the configuration says. */
export type SecretForm =
  /** `at`: the key or variable that holds the text, for messages. */
  | { readonly kind: "text"; readonly text: Secret; readonly at: string }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "env"; readonly name: string }
  | { readonly kind: "credential"; readonly name: string }
  | { readonly kind: "command"; readonly argv: readonly [string, ...string[]] };

/** Why a secret cannot be read, without quoting it. `cause`: an error of the system. */
interface Unreadable {
  readonly why: string;
  readonly cause?: unknown;
}

export type SecretReading = { readonly secret: Secret } | Unreadable;

const MAX_SECRET_BYTES = 64 * 1024;
const COMMAND_TIMEOUT_MS = 30_000;

/** Each call of `read` reads again. It throws `SECRET_UNREADABLE`, or `STOPPED` after an abort. */
export function openSecret(
  form: SecretForm,
  env: Environment,
  commandTimeoutMs: number = COMMAND_TIMEOUT_MS,
): SecretSource {
  const described = describeSecret(form);
  return {
    described,
    read: async (signal) => {
      const reading = await readSecret(form, env, signal, commandTimeoutMs);
      if (signal.aborted) throw new Fault("STOPPED");
      if ("secret" in reading) return reading.secret;
      const { why, cause } = reading;
      throw new Fault("SECRET_UNREADABLE", { detail: `${described} ${why}`, cause });
    },
  };
}

/** Each `ask` runs the command, with the transfer in variables. A command that prints nothing knows no password. */
export function openPasswordCommand(
  argv: readonly [string, ...string[]],
  env: Environment,
  timeoutMs: number = COMMAND_TIMEOUT_MS,
): PasswordCommand {
  const described = describeSecret({ kind: "command", argv });
  return {
    described,
    program: argv[0],
    ask: async ({ mailbox, sender, trackingId, subject }, signal) => {
      const variables = {
        INLET_MAILBOX: mailbox,
        INLET_SENDER: sender,
        INLET_TRACKING_ID: trackingId,
        INLET_SUBJECT: subject,
      };
      const plain = Object.entries(variables).map(([name, text]) => [name, variableText(text)]);
      const commandEnv = { ...env, ...Object.fromEntries(plain) };
      const outcome = await runCommand(argv, commandEnv, timeoutMs, MAX_SECRET_BYTES, signal);
      if (signal.aborted) throw new Fault("STOPPED");
      const isNone = "bytes" in outcome && /^\s*$/.test(Buffer.from(outcome.bytes).toString());
      if (isNone) return undefined;
      const reading = decode(outcome, COMMAND_WORDS);
      const why = "why" in reading ? reading.why : describeWrongPassword(reading.secret);
      if ("secret" in reading && why === undefined) return reading.secret;
      throw new Fault("SECRET_UNREADABLE", { detail: `${described} ${why}` });
    },
  };
}

/** `file /run/secrets/supplier`. Of a command only the program is named: its arguments may hold secrets. */
export function describeSecret(form: SecretForm): string {
  switch (form.kind) {
    case "text":
      return `the plain text of ${form.at}`;
    case "file":
      return `file ${form.path}`;
    case "env":
      return `variable ${form.name}`;
    case "credential":
      return `credential ${form.name}`;
    case "command":
      return `command ${basename(form.argv[0])}`;
  }
}

export async function readSecret(
  form: SecretForm,
  env: Environment,
  signal: AbortSignal,
  commandTimeoutMs: number = COMMAND_TIMEOUT_MS,
): Promise<SecretReading> {
  switch (form.kind) {
    case "text":
      return { secret: form.text };
    case "file":
      return decode(await readBytes(form.path), FILE_WORDS);
    case "env":
      return readVariable(env[form.name]);
    case "credential":
      return readCredential(form.name, env);
    case "command":
      return decode(
        await runCommand(form.argv, env, commandTimeoutMs, MAX_SECRET_BYTES, signal),
        COMMAND_WORDS,
      );
  }
}

function readVariable(text: string | undefined): SecretReading {
  return text === undefined ? { why: "is not set" } : fromText(text, FILE_WORDS.empty);
}

async function readCredential(name: string, env: Environment): Promise<SecretReading> {
  const folder = env["CREDENTIALS_DIRECTORY"];
  if (!folder) {
    return {
      why: "cannot be found, because CREDENTIALS_DIRECTORY is not set: systemd sets it for units with LoadCredential=; elsewhere use { file: … }",
    };
  }
  const outcome = await readBytes(join(folder, name));
  return "why" in outcome
    ? { ...outcome, why: `(${join(folder, name)}) ${outcome.why}` }
    : decode(outcome, FILE_WORDS);
}

/** Reads regular files only: a pipe without a writer would block forever. */
async function readBytes(path: string): Promise<Outcome> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) return { why: "is not a regular file" };
    const buffer = Buffer.alloc(MAX_SECRET_BYTES + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length === buffer.length) return { why: "is larger than 64 KiB" };
    return { bytes: buffer.subarray(0, length) };
  } catch (error) {
    return { why: describeSystemError(error), cause: error };
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
function decode(outcome: Outcome, words: typeof FILE_WORDS): SecretReading {
  if ("why" in outcome) return outcome;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(outcome.bytes);
    return fromText(text.replace(/\r?\n$/, ""), words.empty);
  } catch {
    return { why: words.garbled };
  }
}

function fromText(text: string, whyEmpty: string): SecretReading {
  return text === "" ? { why: whyEmpty } : { secret: new Secret(text) };
}

type Outcome = { readonly bytes: Uint8Array } | Unreadable;

/**
 * Runs a program without a shell, and returns its standard output. Standard error is dropped, because it may quote a
 * secret. The program has its own process group, so that its children end with it.
 */
async function runCommand(
  argv: readonly [string, ...string[]],
  env: Environment,
  timeoutMs: number,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Outcome> {
  if (signal.aborted) return { why: "was stopped" };
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const child = start(argv, env);
  if (child === undefined) return { why: "could not be started" };
  const chunks: Buffer[] = [];
  let length = 0;

  const giveUp = (why: string): void => {
    child.stdout.destroy();
    signalGroup(child.pid, "SIGKILL");
    resolve({ why });
  };
  const stop = (): void => giveUp("was stopped");
  const timer = setTimeout(() => giveUp(`took longer than ${timeoutMs / 1000} s`), timeoutMs);
  signal.addEventListener("abort", stop, { once: true });

  child.stdout.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > maxBytes) giveUp(`printed more than ${maxBytes / 1024} KiB`);
    else chunks.push(chunk);
  });
  child.once("error", (error) => resolve({ why: describeStartFailure(error) }));
  child.once("close", (code, killedBy) => {
    if (code === 0) resolve({ bytes: Buffer.concat(chunks) });
    else resolve({ why: killedBy === null ? `ended with exit code ${code}` : `was killed by ${killedBy}` });
  });
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  });
}

function start([program, ...args]: readonly [string, ...string[]], env: Environment) {
  try {
    return spawn(program, args, { env, detached: true, stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    // For example, an argument contains a NUL. The message would quote it.
    return undefined;
  }
}
