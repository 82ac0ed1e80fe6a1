/** Secrets, certificates and private keys in the configuration. Each is read once at load, to report problems early. */

import { isUtf8 } from "node:buffer";
import { X509Certificate } from "node:crypto";
import { constants } from "node:fs";
import { open, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { PEM_BYTES, SECRET_BYTES } from "../base/bounds.ts";
import { asFault, detailOf, Fault } from "../base/faults.ts";
import { lookAt } from "../base/files.ts";
import { machine } from "../base/machine.ts";
import { variableText } from "../base/process.ts";
import { describeOuterBlanks, describeWrongPassword, Secret, type SecretSource } from "../base/secret.ts";
import type { PasswordCommand } from "../model/mailbox.ts";
import { codeOf, type Environment, formatPath, type Spot } from "./draft.ts";
import { key, list, PATH, READ, type SchemaNode, TEXT } from "./schema-nodes.ts";

/** A secret in plain text, or its source. */
const SECRET_FORM = {
  type: ["string", "object"],
  title: "text, or one of { file: … }, { env: … }, { credential: … }, { command: [ … ] }",
  minLength: 1,
  properties: {
    file: key({ ...PATH, writeOnly: true }, "A file that holds the secret. A final newline is dropped."),
    env: { ...TEXT, description: "The environment variable that holds the secret.", writeOnly: true },
    credential: key(
      { type: "string", title: "a plain file name", pattern: "^(?!\\.{1,2}$)[^/\\u0000]+$", writeOnly: true },
      "The name of a systemd credential: a file in `$CREDENTIALS_DIRECTORY`.",
    ),
    command: key(
      {
        ...list("a list of a program and its arguments", { type: "string", title: "text", writeOnly: true }),
        minItems: 1,
        writeOnly: true,
      },
      "A program that prints the secret, and its arguments, without a shell. Of the daemon's variables, it gets only `PATH`, `HOME`, `LANG` and `TZ`.",
    ),
  },
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  writeOnly: true,
} as const satisfies SchemaNode;

export type RawSecret =
  | string
  | ({ readonly [Key in "file" | "env" | "credential"]?: string } & {
      readonly command?: readonly (string | undefined)[];
    });

export const SECRET = { ...SECRET_FORM, [READ]: secretWith() } as const satisfies SchemaNode;

/** Returns the reader of a secret that has to fit the rule. It runs no command: one may prompt, cost money, or be slow. */
export function secretWith(rule?: SecretRule) {
  return async (raw: RawSecret, at: Spot): Promise<SecretSource> => {
    const { ignoreSecrets, plainSecrets, problems } = at.draft;
    const source = withRule(openSource(raw, at), rule);
    const isText = typeof raw === "string";
    if (isText && at.variable === undefined) plainSecrets.push(at.path);
    if (ignoreSecrets || isCommand(raw)) return source;
    // An object has a single key.
    const { path } = isText ? at : at.at(...Object.keys(raw));
    await source.read(NEVER).catch((error: unknown) => {
      const fault = asFault(error);
      problems.add(path, detailOf(fault), undefined, fault.cause);
    });
    if (!isText && raw.file !== undefined) await trust(at.at("file").resolve(raw.file), at);
    return source;
  };
}

/** The signal for reads that nothing stops. */
const NEVER = new AbortController().signal;
const readStoredPassword = secretWith(describeWrongPassword);

/** Reads it as any secret, but a command is asked about each transfer. A password that no service accepts is refused. */
export async function readPassword(raw: RawSecret, at: Spot): Promise<SecretSource | PasswordCommand> {
  if (isCommand(raw)) return openPasswordCommand(resolveProgram(raw.command, at.at("command")), at.draft.env);
  const source = await readStoredPassword(raw, at);
  if (at.draft.ignoreSecrets) return source;
  // The problem of a password that cannot be read is in the draft.
  const password = await source.read(NEVER).catch(() => undefined);
  const blanks = password && describeOuterBlanks(password);
  if (blanks !== undefined) at.warn(`${source.described} ${blanks}.`);
  return source;
}

function isCommand(raw: RawSecret): raw is { readonly command: readonly (string | undefined)[] } {
  return typeof raw === "object" && raw.command !== undefined;
}

export function openSource(raw: RawSecret, at: Spot): SecretSource {
  const { env, file: config = "" } = at.draft;
  if (typeof raw === "string") {
    const place = at.variable ?? `${formatPath(at.path)} in ${basename(config)}`;
    return { described: `the plain text of ${place}`, read: async () => new Secret(raw) };
  }
  const { file, env: name, credential, command = [] } = raw;
  if (file !== undefined) return inFile(at.at("file").resolve(file));
  if (name !== undefined) return inVariable(name, env);
  if (credential !== undefined) return inCredential(credential, env);
  return fromCommand(resolveProgram(command, at.at("command")), env);
}

/** A program with a slash in its name is a path; a bare name is looked up in PATH. */
export function resolveProgram(command: readonly (string | undefined)[], at: Spot): [string, ...string[]] {
  const [program = "", ...args] = command.map((word) => word ?? "");
  return [program.includes("/") ? at.resolve(program) : program, ...args];
}

/** Describes what is wrong with a secret without quoting it; `undefined` for a valid one. */
export type SecretRule = (secret: Secret) => string | undefined;

type Argv = readonly [string, ...string[]];

const COMMAND_TIMEOUT_MS = 30_000;
const COMMAND_KILL_MS = 1_000;

/** The only variables of the daemon that a command receives: others may hold secrets. */
const PASSED_ON: ReadonlySet<string> = new Set(["PATH", "HOME", "LANG", "TZ"]);

/** The daemon's part of the environment of a command. */
export function environmentFor(env: Environment): Record<string, string> {
  const passed = Object.entries(env).filter(([name]) => PASSED_ON.has(name));
  return Object.fromEntries(passed.filter((it): it is [string, string] => it[1] !== undefined));
}

function withRule({ described, read }: SecretSource, rule: SecretRule = () => undefined): SecretSource {
  return { described, read: async (signal) => demand(rule, await read(signal), described) };
}

function demand(rule: SecretRule, secret: Secret, described: string): Secret {
  const why = rule(secret);
  if (why !== undefined) throw unreadable(described, why);
  return secret;
}

/** Each `ask` runs the command, with the transfer in variables. No output means that the command knows no password. */
export function openPasswordCommand(argv: Argv, env: Environment): PasswordCommand {
  const described = describeCommand(argv);
  return {
    described,
    program: argv[0],
    async ask({ mailbox, sender, trackingId, subject }, signal) {
      const variables = {
        ...environmentFor(env),
        INLET_MAILBOX: variableText(mailbox),
        INLET_SENDER: variableText(sender),
        INLET_TRACKING_ID: variableText(trackingId),
        INLET_SUBJECT: variableText(subject),
      };
      const bytes = await runCommand(argv, variables, COMMAND_TIMEOUT_MS, signal);
      if (/^\s*$/.test(bytes.toString())) return undefined;
      return demand(describeWrongPassword, decode(bytes, COMMAND_WORDS, described), described);
    },
  };
}

export function inFile(path: string): SecretSource {
  const described = `file ${path}`;
  return { described, read: () => readSecret(path, described) };
}

export function inVariable(name: string, env: Environment): SecretSource {
  const described = `variable ${name}`;
  return {
    described,
    async read() {
      const text = env[name];
      if (!text) throw unreadable(described, text === undefined ? "is not set" : FILE_WORDS.empty);
      return new Secret(text);
    },
  };
}

/** A file that systemd provides. */
export function inCredential(name: string, { CREDENTIALS_DIRECTORY: folder }: Environment): SecretSource {
  const described = `credential ${name}`;
  return {
    described,
    async read() {
      if (folder) return readSecret(join(folder, name), `${described} (${join(folder, name)})`);
      throw unreadable(
        described,
        "cannot be found, because CREDENTIALS_DIRECTORY is not set: systemd passes credentials only to its units. Run the command as root with --unit inlet, or use { file: … }",
      );
    },
  };
}

export function fromCommand(
  argv: Argv,
  env: Environment,
  timeoutMs: number = COMMAND_TIMEOUT_MS,
): SecretSource {
  const described = describeCommand(argv);
  const run = (signal: AbortSignal) => runCommand(argv, environmentFor(env), timeoutMs, signal);
  return { described, read: async (signal) => decode(await run(signal), COMMAND_WORDS, described) };
}

/** Only the program is named: its arguments may hold secrets. */
function describeCommand([program]: Argv): string {
  return `command ${basename(program)}`;
}

/** `why`: the end of a sentence, which does not quote the secret. */
function unreadable(described: string, why: string, cause?: unknown): Fault {
  return new Fault("SECRET_UNREADABLE", { detail: `${described} ${why}`, cause });
}

/** Reads regular files only: a pipe without a writer would block forever. */
async function readSecret(path: string, described: string): Promise<Secret> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const facts = await file.stat();
    if (!facts.isFile()) throw unreadable(described, "is not a regular file");
    if (facts.size > SECRET_BYTES) throw unreadable(described, "is larger than 64 KiB");
    return decode(await file.readFile(), FILE_WORDS, described);
  } catch (error) {
    throw error instanceof Fault ? error : unreadable(described, describeSystemError(error), error);
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
function decode(bytes: Buffer, words: typeof FILE_WORDS, described: string): Secret {
  if (!isUtf8(bytes)) throw unreadable(described, words.garbled);
  const text = new TextDecoder().decode(bytes).replace(/\r?\n$/, "");
  if (text === "") throw unreadable(described, words.empty);
  return new Secret(text);
}

/** Standard error is dropped, because it may quote a secret. Throws `STOPPED` after an abort. */
async function runCommand(
  argv: Argv,
  env: Readonly<Record<string, string>>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Buffer> {
  if (signal.aborted) throw new Fault("STOPPED");
  const program = { argv, env, timeoutMs, startBytes: SECRET_BYTES + 1 };
  const { why, stdout } = await machine().runProgram(program, COMMAND_KILL_MS, signal);
  if (signal.aborted) throw new Fault("STOPPED");
  if (stdout.length > SECRET_BYTES) throw unreadable(describeCommand(argv), "printed more than 64 KiB");
  if (why !== undefined) throw unreadable(describeCommand(argv), why.replace(/^it /, ""));
  return stdout;
}

/** A PEM file that holds certificates. Its text is read. */
export const CERTIFICATES = { ...PATH, [READ]: readCertificates } as const satisfies SchemaNode;

/** A PEM file that holds a private key. Its text is read. */
export const PRIVATE_KEY = { ...PATH, [READ]: readPrivateKey } as const satisfies SchemaNode;

async function readPrivateKey(path: string, at: Spot): Promise<string | undefined> {
  await trust(at.resolve(path), at);
  return readPem(path, at);
}

async function readCertificates(path: string, at: Spot): Promise<string | undefined> {
  const text = await readPem(path, at);
  try {
    if (text !== undefined) new X509Certificate(text);
    return text;
  } catch {
    // The parser's message does not name the file.
    return at.refuse(`${at.resolve(path)} holds no certificate`);
  }
}

async function readPem(path: string, at: Spot): Promise<string | undefined> {
  const file = at.resolve(path);
  at.draft.trusted.add(file);
  try {
    const { size } = await stat(file);
    if (size > PEM_BYTES) return at.refuse(`${file} is too large to be a PEM file`);
    const text = await readFile(file, "utf8");
    if (/-----BEGIN [A-Z0-9 ]+-----/.test(text)) return text;
    at.refuse(`${file} is not a PEM file: it has no line -----BEGIN …-----`);
  } catch (error) {
    const code = codeOf(error);
    // A private key is a secret, which this command may not be allowed to read.
    if (at.draft.ignoreSecrets && code === "EACCES") return undefined;
    at.draft.problems.add(at.path, `${file} cannot be read (${code})`, undefined, error);
  }
  return undefined;
}

/** Its readers are warned of now; its writers are looked at by the daemon. */
async function trust(file: string, at: Spot): Promise<void> {
  at.draft.trusted.add(file);
  const readers = await describeReaders(file);
  if (readers !== undefined) at.warn(readers);
}

const GROUP_BITS = 0o060;
const OTHERS_BITS = 0o006;

/**
 * Describes which other users can read or change a file with secrets; `undefined` for none. If the file belongs to another
 * user, its group is ignored: this process may read the file as a member of that group.
 */
export async function describeReaders(
  path: string,
  uid: number | undefined = process.getuid?.(),
): Promise<string | undefined> {
  const file = await lookAt(path);
  if (file === undefined) return undefined;
  const remedy = `restrict it to its owner (chmod go= ${path})`;
  if ((file.mode & OTHERS_BITS) !== 0) {
    return `${path} can be read or changed by every user of this machine: ${remedy}.`;
  }
  const isOurs = uid === undefined || uid === 0 || file.uid === uid;
  if ((file.mode & GROUP_BITS) !== 0 && isOurs) {
    return `${path} can be read or changed by its group: ${remedy}.`;
  }
  return undefined;
}
