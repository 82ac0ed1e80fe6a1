/** Finds and reads the file and the environment, and checks their values against the schema. */
import { hash } from "node:crypto";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { CONFIG_BYTES } from "../base/bounds.ts";
import { Fault } from "../base/faults.ts";
import { readFile, stat } from "../base/files.ts";
import { PACKAGE_FOLDER } from "../base/version.ts";
import type { ConfigDocument } from "./document.ts";
import { codeOf, type Draft, type Environment, type KeyPath, type Place, Problems, Spot } from "./draft.ts";
import { applyOverrides, type Override, readOverrides } from "./environment.ts";
import { checkSchema } from "./explain.ts";
import { readTimezone } from "./times.ts";

/** The configuration file if none is named, and the user has none. */
export const DEFAULT_PATH = "/etc/inlet/inlet.yaml";

/** The file in the user's own configuration folder; `undefined` for a user without a home. */
export function userPath(env: NodeJS.ProcessEnv): string | undefined {
  const { XDG_CONFIG_HOME: folder, HOME: home } = env;
  if (folder !== undefined && isAbsolute(folder)) return join(folder, "inlet/inlet.yaml");
  return home !== undefined && isAbsolute(home) ? join(home, ".config/inlet/inlet.yaml") : undefined;
}

export interface SourceOptions {
  /** The value of `--config`. */
  readonly path?: string | undefined;
  readonly env: Environment;
  /** The value of `--base-url`, which takes precedence over everything. */
  readonly baseUrl?: string | undefined;
  /** Relative paths in the environment and on the command line start here. */
  readonly cwd?: string;
  /** The files to look for if none is named. */
  readonly defaultPaths?: readonly string[];
  /** For commands that need no secret: systemd credentials, for example, are readable only by the daemon. */
  readonly ignoreSecrets?: boolean;
}

/** Explains every key, in a checkout as in an installed package. */
export const EXAMPLE = join(PACKAGE_FOLDER, "config/inlet.example.yaml");

/** `npm run docs` writes it. */
export const EDITOR_SCHEMA = join(PACKAGE_FOLDER, "config/inlet.schema.json");

/**
 * Reads a configuration that fits the schema. Throws `CONFIG_INVALID` if nothing can be read; other problems go to the
 * draft. `required`: top-level keys.
 */
export async function readSource(options: SourceOptions, required: readonly string[]) {
  const { env, cwd = process.cwd() } = options;
  const { overrides, problems: environmentProblems } = readOverrides(env);
  if (options.baseUrl !== undefined) {
    overrides.push({ name: "--base-url", path: ["service", "baseUrl"], value: options.baseUrl });
  }
  const { file, text, candidates } = await findFile(options);
  const isEmpty = file === undefined && overrides.length + environmentProblems.length === 0;
  if (isEmpty && required.length > 0) throw nothingFound(candidates);
  const document = file === undefined ? undefined : await parseFile(file, text);

  const problems = new Problems((path) => findPlace(path, overrides, document, file));
  for (const { path, message, name } of environmentProblems) problems.add(path, message, { name });
  const values = applyOverrides(document?.values ?? {}, overrides);
  const raw = checkSchema(values, required, problems);
  const variableOf = (path: KeyPath) => findOverride(overrides, path)?.name;
  let zone: string | undefined;
  const draft: Draft = {
    env,
    file,
    problems,
    warnings: [],
    trusted: new Set(),
    ignoreSecrets: options.ignoreSecrets ?? false,
    plainSecrets: [],
    groups: new Map(),
    zone() {
      zone ??= readTimezone(at.at("timezone"));
      return zone;
    },
    variableOf,
    resolvePath: (path, text) =>
      resolve(file === undefined || variableOf(path) !== undefined ? cwd : dirname(file), text),
  };
  const at = new Spot(draft, [], [{ raw, path: [] }]);
  /** The path of the file, which may not exist. */
  const wanted = file ?? candidates.at(-1) ?? DEFAULT_PATH;
  const digest = file === undefined ? undefined : digestOf(text);
  return { at, digest, wanted };
}

/** Identifies the text of a configuration. A byte order mark makes no difference. */
export function digestOf(text: string): string {
  return hash("sha256", text.replace(/^\ufeff/, ""));
}

/** The files to look for, the first one first. A named one is the only one. */
export function candidatesOf(options: SourceOptions) {
  const { path, env, cwd = process.cwd() } = options;
  const { defaultPaths = [userPath(env) ?? [], DEFAULT_PATH].flat() } = options;
  const given = path ?? (env["INLET_CONFIG"] || undefined);
  const named = given === undefined ? undefined : resolve(cwd, given);
  return { named, candidates: named === undefined ? defaultPaths : [named] };
}

/** The first candidate that exists. A named file must exist; default files may be missing. */
export async function findFile(options: SourceOptions) {
  const { named, candidates } = candidatesOf(options);
  for (const file of candidates) {
    const text = await tryReadText(file);
    if (text !== undefined) return { file, text, candidates };
  }
  if (named === undefined) return { file: undefined, text: "", candidates };
  const by = options.path === undefined ? "INLET_CONFIG" : "--config";
  throw unreadable(named, `does not exist, but ${by} names it`);
}

/** `undefined` for a missing file. */
async function tryReadText(file: string): Promise<string | undefined> {
  try {
    const { size } = await stat(file);
    if (size > CONFIG_BYTES) throw unreadable(file, "is too large to be a configuration");
    const text = await readFile(file, "utf8");
    if (text.includes("\ufffd")) throw unreadable(file, "is not UTF-8 text");
    return text;
  } catch (error) {
    if (error instanceof Fault) throw error;
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return undefined;
    throw unreadable(file, `cannot be read (${codeOf(error)})`, error);
  }
}

async function parseFile(file: string, text: string): Promise<ConfigDocument> {
  // The YAML parser is loaded only for a file.
  const { parseConfigDocument } = await import("./document.ts");
  const document = parseConfigDocument(text);
  const problems = new Problems(() => undefined);
  for (const { line, column, message } of document.errors) {
    problems.add([], message, { name: file, line, column });
  }
  problems.throwIfAny();
  return document;
}

/** The innermost variable that set this key or a group around it. */
function findOverride(overrides: readonly Override[], path: KeyPath): Override | undefined {
  return overrides.findLast((override) => override.path.every((step, at) => step === path[at]));
}

function findPlace(
  path: KeyPath,
  overrides: readonly Override[],
  document: ConfigDocument | undefined,
  file: string | undefined,
): Place {
  const override = findOverride(overrides, path);
  if (override !== undefined) return { name: override.name };
  // A missing key is reported at its group.
  for (let length = path.length; length > 0; length -= 1) {
    const position = document?.locate(path.slice(0, length));
    if (position !== undefined) return { name: file ?? "", ...position };
  }
  return { name: file ?? "the environment" };
}

function unreadable(file: string, why: string, cause?: unknown): Fault {
  return new Fault("CONFIG_INVALID", { detail: `${file} ${why}`, cause });
}

function nothingFound(candidates: readonly string[]): Fault {
  const missing = candidates.length === 1 ? "does not exist" : "do not exist";
  const detail = `${candidates.join(" and ")} ${missing}, neither --config nor INLET_CONFIG names another file, and no variable sets a key. Create a file with inlet init, start with a copy of ${EXAMPLE}, or set INLET_SERVICE__BASEURL, INLET_INBOX and INLET_MAILBOXES`;
  return new Fault("CONFIG_INVALID", { detail });
}
