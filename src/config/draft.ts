/** Reads what was written, in the file and in the environment, and holds it against the schema. Never writes. */
import { stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Fault } from "../base/faults.ts";
import { PACKAGE_FOLDER } from "../base/version.ts";
import { DEFAULT_PATH } from "./default-path.ts";
import type { ConfigDocument } from "./document.ts";
import { applyOverrides, type Environment, type Override, readOverrides } from "./environment.ts";
import { checkSchema } from "./explain.ts";
import { codeOf, type KeyPath, type Place, Problems, unreadable } from "./problems.ts";
import type { RawSettings } from "./raw.ts";

export interface DraftOptions {
  /** The value of `--config`. */
  readonly path?: string | undefined;
  readonly env: Environment;
  /** The value of `--base-url`, which wins over everything. */
  readonly baseUrl?: string | undefined;
  /** What relative paths in the environment and on the command line are relative to. */
  readonly cwd?: string;
  /** Where to look when no file is named. */
  readonly defaultPath?: string;
  /** For whoever needs no secret: none has to be readable, as credentials are for the daemon alone. */
  readonly ignoreSecrets?: boolean;
}

/** A configuration whose parts have the right form, but have yet to be checked for sense. */
export interface Draft {
  readonly raw: RawSettings;
  readonly env: Environment;
  /** `undefined` where the environment says everything. */
  readonly file: string | undefined;
  /** Of its text. */
  readonly digest: string | undefined;
  /** Where it was looked for. */
  readonly wanted: string;
  readonly problems: Problems;
  /** Allowed, but to be mended; one sentence each. */
  readonly warnings: string[];
  /** No secret has to be readable. */
  readonly ignoreSecrets: boolean;
  /** Which keys of the file hold a secret in plain text. */
  readonly plainSecrets: KeyPath[];
  /** The variable that set the value at this path, if one did. */
  variableOf(path: KeyPath): string | undefined;
  /** Makes a path absolute: relative ones start at the file's folder, or, from a variable, at the current one. */
  resolvePath(path: KeyPath, text: string): string;
}

const LARGEST_FILE_BYTES = 1024 * 1024;

const EXAMPLE = join(PACKAGE_FOLDER, "config/inlet.example.yaml");

/** Throws `CONFIG_INVALID` where there is nothing to go on; other problems are in the draft. `required`: top-level keys. */
export async function readDraft(options: DraftOptions, required: readonly string[]): Promise<Draft> {
  const { env, cwd = process.cwd() } = options;
  const { overrides, problems: environmentProblems } = readOverrides(env);
  if (options.baseUrl !== undefined) {
    overrides.push({ name: "--base-url", path: ["service", "baseUrl"], value: options.baseUrl });
  }
  const { file, wanted } = await findFile(options, cwd);
  const isNothing = file === undefined && overrides.length + environmentProblems.length === 0;
  if (isNothing && required.length > 0) throw nothingFound(wanted);
  const reading = file === undefined ? undefined : await readFile(file, overrides);

  const variableOf = (path: KeyPath) => findOverride(overrides, path)?.name;
  const problems = new Problems((path) => findPlace(path, overrides, reading?.document, file));
  for (const { path, message, place } of environmentProblems) problems.add(path, message, place);
  const raw = checkSchema(reading?.values ?? applyOverrides({}, overrides), required, problems);
  return {
    raw,
    env,
    file,
    digest: reading?.digest,
    wanted,
    problems,
    warnings: [],
    ignoreSecrets: options.ignoreSecrets ?? false,
    plainSecrets: [],
    variableOf,
    resolvePath: (path, text) =>
      resolve(file === undefined || variableOf(path) !== undefined ? cwd : dirname(file), text),
  };
}

/** A file that was named must be there; the usual one may be missing. */
async function findFile(
  { path, env, defaultPath = DEFAULT_PATH }: DraftOptions,
  cwd: string,
): Promise<{ file: string | undefined; wanted: string }> {
  const named = path ?? (env["INLET_CONFIG"] || undefined);
  const wanted = named === undefined ? defaultPath : resolve(cwd, named);
  try {
    const { size } = await stat(wanted);
    if (size > LARGEST_FILE_BYTES) throw unreadable(wanted, "is too large to be a configuration");
    return { file: wanted, wanted };
  } catch (error) {
    if (error instanceof Fault) throw error;
    const isMissing = ["ENOENT", "ENOTDIR"].includes(codeOf(error));
    if (isMissing && named === undefined) return { file: undefined, wanted };
    const by = path === undefined ? "INLET_CONFIG" : "--config";
    throw isMissing
      ? unreadable(wanted, `does not exist, and ${by} names it`)
      : unreadable(wanted, `cannot be read (${codeOf(error)})`);
  }
}

/** What reads files is loaded when there is one. */
async function readFile(file: string, overrides: readonly Override[]) {
  const { readConfigFile } = await import("./file.ts");
  return readConfigFile(file, overrides);
}

/** The innermost variable that set it or something around it. */
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
  // What is missing is reported where it would belong.
  for (let length = path.length; length > 0; length -= 1) {
    const position = document?.locate(path.slice(0, length));
    if (position !== undefined) return { name: file ?? "", ...position };
  }
  return { name: file ?? "the environment" };
}

function nothingFound(wanted: string): Fault {
  const detail = `there is no ${wanted}, neither --config nor INLET_CONFIG names another file, and no variable sets a key. Have one made by inlet init, begin with a copy of ${EXAMPLE}, or set INLET_SERVICE__BASEURL, INLET_INBOX and INLET_MAILBOXES`;
  return new Fault("CONFIG_INVALID", { detail });
}
