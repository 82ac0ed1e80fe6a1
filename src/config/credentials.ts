/** Secrets, certificates and private keys in the configuration. Each is read once at load, to report problems early. */

import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { asFault, detailOf } from "../base/faults.ts";
import { lookAt } from "../base/files.ts";
import { describeOuterBlanks, describeWrongPassword, Secret, type SecretSource } from "../base/secret.ts";
import type { PasswordCommand } from "../model/mailbox.ts";
import { codeOf, type Draft, formatPath, type KeyPath } from "./draft.ts";
import { PATH, READ, type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";
import {
  describeSecret,
  openPasswordCommand,
  openSecret,
  type SecretForm,
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
      type: "array",
      title: "a list of a program and its arguments",
      items: { type: "string", title: "text", writeOnly: true },
      minItems: 1,
      description:
        "A program that prints the secret, and its arguments. It runs without a shell. Of the variables of the daemon, it gets only `PATH`, `HOME`, `LANG` and `TZ`.",
      writeOnly: true,
    },
  },
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  writeOnly: true,
} as const satisfies SchemaNode;

export type RawSecret = Written<typeof SECRET_FORM>;

export const SECRET = { ...SECRET_FORM, [READ]: secretWith() } as const satisfies SchemaNode;

/** Reads a secret that has to fit the rule. Commands are not run: they may prompt, cost money, or be slow. */
export function secretWith(rule?: SecretRule) {
  return async (raw: RawSecret, path: KeyPath, draft: Draft): Promise<SecretSource> => {
    const form = parseForm(raw, path, draft);
    const source = openSecret(form, draft.env, undefined, rule);
    if (form.kind === "text" && draft.variableOf(path) === undefined) draft.plainSecrets.push(path);
    if (form.kind === "command" || draft.ignoreSecrets) return source;
    const key = form.kind === "text" ? path : [...path, form.kind];
    await source.read(NEVER).catch((error: unknown) => {
      const fault = asFault(error);
      draft.problems.add(key, detailOf(fault), undefined, fault.cause);
    });
    if (form.kind === "file") await warnOfReaders(form.path, path, draft);
    return source;
  };
}

const NEVER = new AbortController().signal;
const readPassword = secretWith(describeWrongPassword);

/** As any secret, but a command is asked about each transfer. Wrong passwords would cost attempts. */
export async function readPasswordKey(
  raw: RawSecret,
  path: KeyPath,
  draft: Draft,
): Promise<SecretSource | PasswordCommand> {
  const form = parseForm(raw, path, draft);
  if (form.kind === "command") return openPasswordCommand(form.argv, draft.env);
  const source = await readPassword(raw, path, draft);
  if (draft.ignoreSecrets) return source;
  // The problem of a password that cannot be read is in the draft.
  const password = await source.read(NEVER).catch(() => undefined);
  const blanks = password && describeOuterBlanks(password);
  if (blanks !== undefined) draft.warnings.push(`${formatPath(path)}: ${source.described} ${blanks}.`);
  return source;
}

/** The source of a secret: `file /run/secrets/supplier`. A secret in plain text is not shown. */
export function describeSecretKey(raw: RawSecret, path: KeyPath, draft: Draft): string {
  const form = parseForm(raw, path, draft);
  return form.kind === "text" ? String(form.text) : describeSecret(form);
}

function parseForm(raw: RawSecret, path: KeyPath, draft: Draft): SecretForm {
  if (typeof raw === "string") {
    const at = draft.variableOf(path) ?? `${formatPath(path)} in ${basename(draft.file ?? "")}`;
    return { kind: "text", text: new Secret(raw), at };
  }
  const { file, env, credential, command = [] } = raw;
  if (file !== undefined) return { kind: "file", path: draft.resolvePath([...path, "file"], file) };
  if (env !== undefined) return { kind: "env", name: env };
  if (credential !== undefined) return { kind: "credential", name: credential };
  return { kind: "command", argv: resolveProgram(command, [...path, "command"], draft) };
}

/** A program with a slash in its name is a path; a bare name is looked up in PATH. */
export function resolveProgram(
  command: readonly (string | undefined)[],
  path: KeyPath,
  draft: Draft,
): [string, ...string[]] {
  const [program = "", ...args] = command.map((word) => word ?? "");
  return [program.includes("/") ? draft.resolvePath(path, program) : program, ...args];
}

/** A PEM file that holds certificates. Its text is read. */
export const CERTIFICATES = { ...PATH, [READ]: readCertificates } as const satisfies SchemaNode;

/** A PEM file that holds a private key. Its text is read. */
export const PRIVATE_KEY = { ...PATH, [READ]: readPrivateKey } as const satisfies SchemaNode;

async function readPrivateKey(text: string, path: KeyPath, draft: Draft): Promise<string | undefined> {
  await warnOfReaders(draft.resolvePath(path, text), path, draft);
  return readPem(text, path, draft);
}

async function readCertificates(file: string, path: KeyPath, draft: Draft): Promise<string | undefined> {
  const text = await readPem(file, path, draft);
  if (text === undefined) return undefined;
  try {
    void new X509Certificate(text);
    return text;
  } catch {
    // The parser's message does not name the file.
    draft.problems.add(path, `${draft.resolvePath(path, file)} holds no certificate`);
    return undefined;
  }
}

async function readPem(given: string, path: KeyPath, draft: Draft): Promise<string | undefined> {
  const file = draft.resolvePath(path, given);
  try {
    const text = await readFile(file, "utf8");
    if (/-----BEGIN [A-Z0-9 ]+-----/.test(text)) return text;
    draft.problems.add(path, `${file} is not a PEM file: it has no line -----BEGIN …-----`);
  } catch (error) {
    const code = codeOf(error);
    // A private key is a secret.
    if (!draft.ignoreSecrets || code !== "EACCES")
      draft.problems.add(path, `${file} cannot be read (${code})`, undefined, error);
  }
  return undefined;
}

async function warnOfReaders(file: string, path: KeyPath, draft: Draft): Promise<void> {
  const readers = await describeReaders(file);
  if (readers !== undefined) draft.warnings.push(`${formatPath(path)}: ${readers}`);
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
