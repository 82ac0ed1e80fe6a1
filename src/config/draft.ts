/** A configuration while it is read: the sources of its values, and the problems found so far. */
import { Fault, systemCode } from "../base/faults.ts";

export type KeyPath = readonly (string | number)[];

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Draft {
  readonly env: Environment;
  /** `undefined` if the environment sets everything. */
  readonly file: string | undefined;
  readonly problems: Problems;
  /** Valid settings that should be changed; one sentence each. */
  readonly warnings: string[];
  /** Secrets are not read, and may be unreadable. */
  readonly ignoreSecrets: boolean;
  /** Files other than the configuration that it trusts: secrets, keys and certificates. */
  readonly trusted: Set<string>;
  /** Keys of the file that hold a secret in plain text. */
  readonly plainSecrets: KeyPath[];
  /** Groups that were read, by the paths of their layers: many mailboxes share them. */
  readonly groups: Map<string, Promise<unknown>>;
  /** The time zone of windows and dates. It is looked up only if a key needs it, because that is slow. */
  zone(): string;
  /** The variable that set the value at this path, if one did. */
  variableOf(path: KeyPath): string | undefined;
  /** Makes a path absolute. A relative one starts at the file's folder; one from a variable, at the current folder. */
  resolvePath(path: KeyPath, text: string): string;
}

/** A place that sets a key. A mailbox, for example, may set it, and the group for all mailboxes too. */
interface Layer {
  readonly raw: unknown;
  readonly path: KeyPath;
}

/** A key in a draft. */
export class Spot {
  readonly draft: Draft;
  /** The key in its own group, even if only a group for all mailboxes sets it. */
  readonly own: KeyPath;
  /** The first layer decides. There is none if the key is not set. */
  readonly layers: readonly Layer[];
  /** Where the value is set; where the key would be, if it is not set. */
  readonly path: KeyPath;

  constructor(draft: Draft, own: KeyPath, layers: readonly Layer[], unset: KeyPath = own) {
    this.draft = draft;
    this.own = own;
    this.layers = layers;
    this.path = layers[0]?.path ?? unset;
  }

  get raw(): unknown {
    return this.layers[0]?.raw;
  }

  /** The variable that sets the value, if one does. */
  get variable(): string | undefined {
    return this.draft.variableOf(this.path);
  }

  /** The same key with its first layer alone: nothing is inherited. */
  get first(): Spot {
    return new Spot(this.draft, this.own, this.layers.slice(0, 1), this.path);
  }

  /** A key of this group, or an entry of this list. */
  at(...[key, ...inner]: KeyPath): Spot {
    if (key === undefined) return this;
    const layers = this.layers.flatMap(({ raw, path }) => {
      const value = (raw as Record<string | number, unknown>)[key];
      return value === undefined || value === null ? [] : [{ raw: value, path: [...path, key] }];
    });
    return new Spot(this.draft, [...this.own, key], layers, [...this.path, key]).at(...inner);
  }

  entries(): Spot[] {
    return Array.isArray(this.raw) ? this.raw.map((_, at) => this.at(at)) : [];
  }

  isSet(...keys: KeyPath): boolean {
    return this.at(...keys).layers.length > 0;
  }

  /** Whether this group sets the key itself, and does not inherit it. */
  sets(key: string): boolean {
    return this.first.isSet(key);
  }

  isRefused(...keys: KeyPath): boolean {
    return this.draft.problems.has(this.at(...keys).path);
  }

  /** Adds a problem, of this key or of one within it. `message` never holds a secret. */
  refuse(message: string, ...keys: KeyPath): undefined {
    this.draft.problems.add(this.at(...keys).path, message);
  }

  /** Adds a warning, unless it was given. */
  warn(message: string, ...keys: KeyPath): void {
    const { warnings } = this.draft;
    const warning = `${formatPath(this.at(...keys).path)}: ${message}`;
    if (!warnings.includes(warning)) warnings.push(warning);
  }

  resolve(path: string): string {
    return this.draft.resolvePath(this.path, path);
  }
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
  /** The source of the value of a key. */
  readonly placeOf: (path: KeyPath) => Place | undefined;
  readonly #found: Problem[] = [];

  constructor(placeOf: (path: KeyPath) => Place | undefined) {
    this.placeOf = placeOf;
  }

  /** `message` never holds a secret. A repeated problem is added once. `cause`: an error of the system. */
  add(path: KeyPath, message: string, place: Place | undefined = this.placeOf(path), cause?: unknown): void {
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
