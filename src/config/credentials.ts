/** Secrets, certificates and private keys in the configuration. Each is read once at load, to report problems early. */

import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { asFault, detailOf } from "../base/faults.ts";
import { lookAt } from "../base/files.ts";
import { describeOuterBlanks, describeWrongPassword, type SecretSource } from "../base/secret.ts";
import type { PasswordCommand } from "../model/mailbox.ts";
import { codeOf, formatPath, type Spot } from "./draft.ts";
import { list, PATH, READ, type SchemaNode, TEXT } from "./schema-nodes.ts";
import {
  fromCommand,
  inCredential,
  inFile,
  inVariable,
  openPasswordCommand,
  openSecret,
  type SecretPlace,
  type SecretRule,
} from "./secrets.ts";

/** A secret in plain text, or its source. */
const SECRET_FORM = {
  type: ["string", "object"],
  title: "text, or one of { file: … }, { env: … }, { credential: … }, { command: [ … ] }",
  minLength: 1,
  properties: {
    file: {
      ...PATH,
      description: "A file that holds the secret. A final newline is dropped.",
      writeOnly: true,
    },
    env: { ...TEXT, description: "The environment variable that holds the secret.", writeOnly: true },
    credential: {
      type: "string",
      title: "a plain file name",
      pattern: "^(?!\\.{1,2}$)[^/\\u0000]+$",
      description: "The name of a systemd credential: a file in `$CREDENTIALS_DIRECTORY`.",
      writeOnly: true,
    },
    command: {
      ...list("a list of a program and its arguments", { type: "string", title: "text", writeOnly: true }),
      minItems: 1,
      description:
        "A program that prints the secret, and its arguments, without a shell. Of the daemon's variables, it gets only `PATH`, `HOME`, `LANG` and `TZ`.",
      writeOnly: true,
    },
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

/** Reads a secret that has to fit the rule. Commands are not run: they may prompt, cost money, or be slow. */
export function secretWith(rule?: SecretRule) {
  return async (raw: RawSecret, at: Spot): Promise<SecretSource> => {
    const { ignoreSecrets, plainSecrets, problems } = at.draft;
    const source = openSecret(placeOf(raw, at), rule);
    const isText = typeof raw === "string";
    if (isText && at.variable === undefined) plainSecrets.push(at.path);
    if (ignoreSecrets || isCommand(raw)) return source;
    const { path } = isText ? at : at.at(...Object.keys(raw));
    await source.read(NEVER).catch((error: unknown) => {
      const fault = asFault(error);
      problems.add(path, detailOf(fault), undefined, fault.cause);
    });
    if (!isText && raw.file !== undefined) await warnOfReaders(at.at("file").resolve(raw.file), at);
    return source;
  };
}

const NEVER = new AbortController().signal;
const readStoredPassword = secretWith(describeWrongPassword);

/** As any secret, but a command is asked about each transfer. Wrong passwords would cost attempts. */
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

export function placeOf(raw: RawSecret, at: Spot): SecretPlace {
  const { env, file: config = "" } = at.draft;
  if (typeof raw === "string") {
    const place = at.variable ?? `${formatPath(at.path)} in ${basename(config)}`;
    return { described: `the plain text of ${place}`, read: async () => raw };
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

/** A PEM file that holds certificates. Its text is read. */
export const CERTIFICATES = { ...PATH, [READ]: readCertificates } as const satisfies SchemaNode;

/** A PEM file that holds a private key. Its text is read. */
export const PRIVATE_KEY = { ...PATH, [READ]: readPrivateKey } as const satisfies SchemaNode;

async function readPrivateKey(path: string, at: Spot): Promise<string | undefined> {
  await warnOfReaders(at.resolve(path), at);
  return readPem(path, at);
}

async function readCertificates(path: string, at: Spot): Promise<string | undefined> {
  const text = await readPem(path, at);
  try {
    return text && new X509Certificate(text) && text;
  } catch {
    // The parser's message does not name the file.
    return at.refuse(`${at.resolve(path)} holds no certificate`);
  }
}

async function readPem(path: string, at: Spot): Promise<string | undefined> {
  const file = at.resolve(path);
  try {
    const text = await readFile(file, "utf8");
    if (/-----BEGIN [A-Z0-9 ]+-----/.test(text)) return text;
    at.refuse(`${file} is not a PEM file: it has no line -----BEGIN …-----`);
  } catch (error) {
    const code = codeOf(error);
    // A private key is a secret.
    if (!at.draft.ignoreSecrets || code !== "EACCES")
      at.draft.problems.add(at.path, `${file} cannot be read (${code})`, undefined, error);
  }
  return undefined;
}

async function warnOfReaders(file: string, at: Spot): Promise<void> {
  const readers = await describeReaders(file);
  if (readers !== undefined) at.warn(readers);
}

const GROUP_BITS = 0o060;
const OTHERS_BITS = 0o006;

/**
 * Describes which other users can read or change a file with secrets; `undefined` for none. The group of another user's
 * file is ignored: it may be how we are allowed to read the file.
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
