/** Environment variables that set keys of the configuration: `INLET_SERVICE__BASEURL` sets `service.baseUrl`. */
import { nearestName } from "../base/nearest.ts";
import { type Environment, isGroup, type KeyPath, variableFor } from "./draft.ts";
import { SCHEMA } from "./schema.ts";
import { type SchemaNode, typesOf } from "./schema-nodes.ts";

export interface Override {
  readonly name: string;
  readonly path: readonly string[];
  readonly value: unknown;
}

interface EnvironmentProblem {
  readonly name: string;
  readonly path: KeyPath;
  readonly message: string;
}

const PREFIX = variableFor([]);
const SEPARATOR = "__";

/** Variables of Inlet that set no key. */
const OTHER_VARIABLES = new Set(["INLET_CONFIG", "INLET_PASSWORD", "INLET_VERSION"]);

/** Kubernetes sets these for a service that is called inlet. */
const KUBERNETES = /^INLET_(SERVICE_HOST|(SERVICE_)?PORT)(_[A-Z0-9_]*)?$/;

/**
 * Every key that a variable can set, by the variable's name. A list is set as a whole. `version` is not among them: it
 * describes a file, and container images set `INLET_VERSION` to the version of the program.
 */
const SETTABLE: ReadonlyMap<string, { readonly path: readonly string[]; readonly node: SchemaNode }> =
  new Map(
    settableKeys(SCHEMA, [])
      .map((key) => [variableFor(key.path), key] as const)
      .filter(([name]) => !OTHER_VARIABLES.has(name)),
  );

/** The keys that the environment sets, outer ones before inner ones. An empty variable is ignored. */
export function readOverrides(env: Environment): {
  readonly overrides: Override[];
  readonly problems: EnvironmentProblem[];
} {
  const overrides: Override[] = [];
  const problems: EnvironmentProblem[] = [];
  for (const [name, text] of Object.entries(env)) {
    if (!text) continue;
    const key = SETTABLE.get(name.toUpperCase());
    if (key === undefined) {
      const message = describeUnknown(name.toUpperCase(), env);
      if (message !== undefined) problems.push({ name, path: [], message });
      continue;
    }
    const parsed = parseValue(key.node, text);
    if ("value" in parsed) overrides.push({ name, path: key.path, value: parsed.value });
    else problems.push({ name, path: key.path, message: parsed.problem });
  }
  overrides.sort((a, b) => a.path.length - b.path.length || (a.name < b.name ? -1 : 1));
  return { overrides, problems: [...problems, ...findClashes(overrides)] };
}

/** A copy of the values with the overrides applied. */
export function applyOverrides(
  values: Readonly<Record<string, unknown>>,
  overrides: readonly Override[],
): Record<string, unknown> {
  const result: Record<string, unknown> = structuredClone(values);
  /** Groups that an earlier override has set: a later one adds to them. */
  const overridden = new Set<unknown>();
  for (const { path, value } of overrides) {
    let group = result;
    let node: SchemaNode = SCHEMA;
    for (const key of path.slice(0, -1)) {
      node = node.properties?.[key] ?? node;
      const existing = group[key];
      // In a group of keys that exclude each other, the first variable's key replaces the file's.
      const isReplaced = node.maxProperties === 1 && !overridden.has(existing);
      const next: Record<string, unknown> = isGroup(existing) && !isReplaced ? existing : {};
      overridden.add(next);
      group[key] = next;
      group = next;
    }
    group[path.at(-1) ?? ""] = value;
    overridden.add(value);
  }
  return result;
}

function settableKeys(
  node: SchemaNode,
  path: readonly string[],
): { readonly path: readonly string[]; readonly node: SchemaNode }[] {
  return Object.entries(node.properties ?? {}).flatMap(([key, child]) => {
    const childPath = [...path, key];
    return [{ path: childPath, node: child }, ...settableKeys(child, childPath)];
  });
}

/** `undefined` for another program's variable, and for one that Inlet sets for its commands. */
function describeUnknown(name: string, env: Environment): string | undefined {
  // Hand-off, check and password commands may call Inlet. The variables that they get are ours.
  if (env["INLET_TRACKING_ID"] !== undefined) return undefined;
  if (!name.startsWith(PREFIX) || OTHER_VARIABLES.has(name) || KUBERNETES.test(name)) return undefined;
  for (const [variable, { node }] of SETTABLE) {
    const isWithin = name.startsWith(`${variable}${SEPARATOR}`) && typesOf(node).includes("array");
    if (isWithin) return `no such variable: the whole list is set by ${variable}, as JSON`;
  }
  const known = [...SETTABLE.keys()];
  // The most likely mistake is one underscore instead of two.
  const plain = (variable: string) => variable.slice(PREFIX.length).replaceAll("_", "");
  const isOurs = name.includes(SEPARATOR);
  // Other programs may use our prefix: only a name very close to one of ours is a mistake.
  const maxDistance = isOurs ? undefined : (variable: string) => (variable.length < 6 ? 1 : 2);
  const nearest = nearestName(plain(name), known.map(plain), maxDistance);
  const meant = known.find((variable) => plain(variable) === nearest);
  if (meant !== undefined) return `no such variable, did you mean ${meant}?`;
  return isOurs ? "no such variable: config/inlet.example.yaml lists every key" : undefined;
}

/**
 * Text where the key allows text, unless it looks like JSON; else JSON. Text that is no JSON is left to the schema, unless the
 * key takes a group or list.
 */
function parseValue(
  node: SchemaNode,
  text: string,
): { readonly value: unknown } | { readonly problem: string } {
  const types = typesOf(node);
  const isSwitch = types.includes("boolean") && ["true", "false"].includes(text);
  const looksLikeGroup = types.includes("object") && text.trimStart().startsWith("{");
  const looksLikeList = types.includes("array") && text.trimStart().startsWith("[");
  if (types.includes("string") && !isSwitch && !looksLikeGroup && !looksLikeList) return { value: text };
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    if (!types.includes("object") && !types.includes("array")) return { value: text };
    // Only the position is repeated: the rest of the message quotes the text, which may hold secrets.
    const [position = ""] = /\(line \d+ column \d+\)/.exec(String(error)) ?? [];
    return {
      problem: `must be ${node.title ?? "a value"}, written as JSON${position && `: check ${position}`}`,
    };
  }
}

/** Variables that set the key of another one, in other case, or a key within one that another sets to no group. */
function findClashes(overrides: readonly Override[]): EnvironmentProblem[] {
  return overrides.flatMap(({ name, path }, at) => {
    const outer = overrides.slice(0, at).find((other) => {
      const isWithin = other.path.every((step, depth) => step === path[depth]);
      return isWithin && (other.path.length === path.length || !isGroup(other.value));
    });
    return outer ? { name, path, message: `${outer.name} sets the same key: set only one of the two` } : [];
  });
}
