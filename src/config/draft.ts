/** A configuration while it is read: the sources of its values, and the problems found so far. */
import { Fault, systemCode } from "../base/faults.ts";

export type KeyPath = readonly (string | number)[];

export type Environment = Readonly<Record<string, string | undefined>>;

/** Passed to the reader of each group. */
export interface Draft {
  readonly env: Environment;
  /** `undefined` if the environment sets everything. */
  readonly file: string | undefined;
  readonly problems: Problems;
  /** Valid settings that should be changed; one sentence each. */
  readonly warnings: string[];
  /** Secrets are not read, and may be unreadable. */
  readonly ignoreSecrets: boolean;
  /** Keys of the file that hold a secret in plain text. */
  readonly plainSecrets: KeyPath[];
  /** The time zone of windows and dates. It is looked up only if a key needs it, because that is slow. */
  zone(): string;
  /** The variable that set the value at this path, if one did. */
  variableOf(path: KeyPath): string | undefined;
  /** Makes a path absolute. A relative one starts at the file's folder; one from a variable, at the current folder. */
  resolvePath(path: KeyPath, text: string): string;
}

/** A value and its key. */
export interface Given<Value> {
  readonly value: Value;
  readonly path: KeyPath;
}

/** The source of a value. */
export interface Place {
  /** A file, an environment variable, or `the environment`. */
  readonly name: string;
  /** Counted from 1. */
  readonly line?: number;
  readonly column?: number;
}

interface Problem {
  readonly path: string;
  readonly place: Place | undefined;
  readonly text: string;
  readonly cause: unknown;
}

const MAX_SHOWN_CHARACTERS = 80;

export class Problems {
  readonly #placeOf: (path: KeyPath) => Place | undefined;
  readonly #found: Problem[] = [];

  constructor(placeOf: (path: KeyPath) => Place | undefined) {
    this.#placeOf = placeOf;
  }

  /** `message` never holds a secret. A repeated problem is added once. `cause`: an error of the system. */
  add(path: KeyPath, message: string, place: Place | undefined = this.#placeOf(path), cause?: unknown): void {
    const key = formatPath(path);
    const problem = { path: key, place, text: key === "" ? message : `${key}: ${message}`, cause };
    const line = formatProblem(problem);
    if (!this.#found.some((known) => formatProblem(known) === line)) this.#found.push(problem);
  }

  has(path: KeyPath): boolean {
    return this.#found.some((problem) => problem.path === formatPath(path));
  }

  get isEmpty(): boolean {
    return this.#found.length === 0;
  }

  /** Throws one `CONFIG_INVALID` that lists all problems, in the order of the file. It has a cause if all have one. */
  throwIfAny(): void {
    if (this.isEmpty) return;
    const lines = this.#found.toSorted((a, b) => inFileOrder(a.place, b.place)).map(formatProblem);
    const detail = lines.length === 1 ? lines.join() : `${lines.length} problems\n${lines.join("\n")}`;
    const causes = this.#found.map(({ cause }) => cause);
    throw new Fault("CONFIG_INVALID", { detail, cause: causes.includes(undefined) ? undefined : causes[0] });
  }
}

/** `["mailboxes", 0, "poll"]` → `mailboxes[0].poll`. */
export function formatPath(path: KeyPath): string {
  return path
    .map((step, at) => {
      if (typeof step === "number") return `[${step}]`;
      const name = /^[\w-]+$/.test(step) ? step : showValue(step);
      return at === 0 ? name : `.${name}`;
    })
    .join("");
}

/** A value for a message: on one line, and shortened. */
export function showValue(value: unknown): string {
  const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
  return shown.length <= MAX_SHOWN_CHARACTERS ? shown : `${shown.slice(0, MAX_SHOWN_CHARACTERS)}…`;
}

/** Problems outside the file come first. */
function inFileOrder(a: Place | undefined, b: Place | undefined): number {
  return (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);
}

function formatProblem({ place, text }: Problem): string {
  if (place === undefined) return text;
  const position = place.line === undefined ? "" : `:${place.line}:${place.column ?? 1}`;
  return `${place.name}${position}: ${text}`;
}

/** Whether a value from the file has keys. */
export function isGroup(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The system's code for an error, such as `ENOENT`. */
export function codeOf(error: unknown): string {
  return systemCode(error) || "unknown reason";
}

/** `["service", "baseUrl"]` → `INLET_SERVICE__BASEURL`. */
export function variableFor(path: readonly string[]): string {
  return `INLET_${path.join("__").toUpperCase()}`;
}
