/** Secrets, certificates and private keys in the configuration. Each is read once at load, to report problems early. */

import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { Fault } from "../base/faults.ts";
import { lookAt } from "../base/files.ts";
import { describeOuterBlanks, describeWrongPassword, Secret, type SecretSource } from "../base/secret.ts";
import type { PasswordCommand } from "../model/mailbox.ts";
import { codeOf, type Draft, formatPath, type Given, type KeyPath } from "./draft.ts";
import { PATH, type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";
import { describeSecret, openPasswordCommand, openSecret, readSecret, type SecretForm } from "./secrets.ts";

/** A secret in plain text, or its source. */
export const SECRET = {
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
      description: "A program that prints the secret, and its arguments. It runs without a shell.",
      writeOnly: true,
    },
  },
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  writeOnly: true,
} as const satisfies SchemaNode;

type RawSecret = Written<typeof SECRET>;

/** Describes what is wrong with a secret without quoting it; `undefined` for a valid one. */
type SecretRule = (secret: Secret) => string | undefined;

/** Problems and warnings go to the draft. Commands are not run: they may prompt, cost money, or be slow. */
export async function readSecretKey(
  raw: RawSecret,
  path: KeyPath,
  draft: Draft,
  rule: SecretRule = () => undefined,
): Promise<SecretSource> {
  const form = parseForm(raw, path, draft);
  if (form.kind === "text" && draft.variableOf(path) === undefined) draft.plainSecrets.push(path);
  if (form.kind !== "command" && !draft.ignoreSecrets) await check(form, path, draft, rule);
  return withRule(openSecret(form, draft.env), rule);
}

/** As `readSecretKey`, but a command is asked about each transfer. Wrong passwords would cost attempts. */
export async function readPasswordKey(
  raw: RawSecret,
  path: KeyPath,
  draft: Draft,
): Promise<SecretSource | PasswordCommand> {
  const form = parseForm(raw, path, draft);
  if (form.kind === "command") return openPasswordCommand(form.argv, draft.env);
  const source = await readSecretKey(raw, path, draft, describeWrongPassword);
  if (draft.ignoreSecrets) return source;
  // The problem of a password that cannot be read is in the draft.
  const password = await source.read(new AbortController().signal).catch(() => undefined);
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

async function check(form: SecretForm, path: KeyPath, draft: Draft, rule: SecretRule): Promise<void> {
  const reading = await readSecret(form, draft.env, new AbortController().signal);
  const { why, cause } = "why" in reading ? reading : { why: rule(reading.secret) };
  const key = form.kind === "text" ? path : [...path, form.kind];
  if (why !== undefined) draft.problems.add(key, `${describeSecret(form)} ${why}`, undefined, cause);
  if (form.kind === "file") await warnOfReaders(form.path, path, draft);
}

function withRule(source: SecretSource, rule: SecretRule): SecretSource {
  return {
    described: source.described,
    read: async (signal) => {
      const secret = await source.read(signal);
      const why = rule(secret);
      if (why !== undefined) throw new Fault("SECRET_UNREADABLE", { detail: `${source.described} ${why}` });
      return secret;
    },
  };
}

type PemKey = "ca" | "cert" | "key";

/** PEM texts; problems and warnings go to the draft. */
export async function readPemFiles(
  given: Readonly<Record<PemKey, Given<string> | undefined>>,
  draft: Draft,
): Promise<Record<PemKey, string | undefined>> {
  const { ca, cert, key } = given;
  if (cert !== undefined && key === undefined) {
    draft.problems.add(cert.path, "needs its private key too: set key");
  }
  if (key !== undefined && cert === undefined) {
    draft.problems.add(key.path, "needs its certificate too: set cert");
  }
  if (key !== undefined) await warnOfReaders(draft.resolvePath(key.path, key.value), key.path, draft);
  return {
    ca: await readCertificates(ca, draft),
    cert: await readCertificates(cert, draft),
    key: await readPem(key, draft),
  };
}

/** A PEM text that holds a certificate; problems go to the draft. */
export async function readCertificates(
  given: Given<string> | undefined,
  draft: Draft,
): Promise<string | undefined> {
  const text = await readPem(given, draft);
  if (given === undefined || text === undefined) return text;
  try {
    void new X509Certificate(text);
    return text;
  } catch {
    // The parser's message does not name the file.
    draft.problems.add(given.path, `${draft.resolvePath(given.path, given.value)} holds no certificate`);
    return undefined;
  }
}

async function readPem(given: Given<string> | undefined, draft: Draft): Promise<string | undefined> {
  if (given === undefined) return undefined;
  const file = draft.resolvePath(given.path, given.value);
  try {
    const text = await readFile(file, "utf8");
    if (/-----BEGIN [A-Z0-9 ]+-----/.test(text)) return text;
    draft.problems.add(given.path, `${file} is not a PEM file: it has no line -----BEGIN …-----`);
  } catch (error) {
    const code = codeOf(error);
    // A private key is a secret.
    if (!draft.ignoreSecrets || code !== "EACCES")
      draft.problems.add(given.path, `${file} cannot be read (${code})`, undefined, error);
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
