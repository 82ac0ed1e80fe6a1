/** The effective values of the configuration: each key with its value and its source, and without any secret. */
import { join } from "node:path";
import { nearestName } from "../base/nearest.ts";
import { Secret } from "../base/secret.ts";
import { describeSecretKey, SECRET } from "./credentials.ts";
import { type Draft, type Environment, formatPath, isGroup, type KeyPath, type Place } from "./draft.ts";
import { defaultManifest } from "./handoff.ts";
import { type Layer, layersWithin } from "./layers.ts";
import { type LoadOptions, loadSettings } from "./load.ts";
import { DEFAULTS } from "./mailboxes.ts";
import { CLIENT_ID_FILE } from "./memory.ts";
import { SCHEMA } from "./schema.ts";
import { PATH, type SchemaKeys, type SchemaNode } from "./schema-nodes.ts";
import type { Settings } from "./settings.ts";
import { readSource } from "./source.ts";

export interface EffectiveValue {
  /** `mailboxes[0].poll`. */
  readonly key: string;
  /** A secret is described, never shown. */
  readonly value: unknown;
  /** `/etc/inlet/inlet.yaml:3`, the name of a variable, or `default`. */
  readonly from: string;
}

const DEFAULT = "default";
/** Groups that are listed only if they are set, as all groups with required keys are. Other groups show their defaults. */
const LEFT_OUT = ["redis", "check"];
/** Keys that a mailbox has from the whole configuration, and a route from its mailbox, unless it sets them itself. */
const LAYERED = ["inbox", "service", "check", "handoff", ...Object.keys(DEFAULTS.properties)];
const LAYERED_LISTS = ["mailboxes", "routes"];
const HIDDEN = String(new Secret(""));

/** In the order of the reference. Throws `CONFIG_INVALID`. Reads no secret, and runs no command. */
export async function readEffective(options: LoadOptions): Promise<EffectiveValue[]> {
  const settings = await loadSettings({ ...options, ignoreSecrets: true });
  const { raw, draft, placeOf } = await readSource({ ...options, ignoreSecrets: true }, SCHEMA.required);
  const values = new Map<string, EffectiveValue>();
  for (const { node, given, path } of keysOf(SCHEMA, [{ raw, path: [] }], [])) {
    const key = formatPath(path);
    const found =
      given === undefined
        ? (computedDefault(key, settings, draft.env, values) ?? { value: node.default, from: DEFAULT })
        : { value: show(node, given.raw, given.path, draft), from: formatPlace(placeOf(given.path)) };
    if (found.value !== undefined) values.set(key, { ...found, key });
  }
  return [...values.values()];
}

type Group = Readonly<Record<string, unknown>>;

interface Key {
  readonly node: SchemaNode;
  /** The layer that sets the key; `undefined` if it is not set. */
  readonly given: Layer<unknown> | undefined;
  readonly path: KeyPath;
}

/** Every key, without the groups around them. The first layer decides. `around`: further layers of the entries of a list. */
function* keysOf(
  node: SchemaNode,
  layers: readonly Layer<unknown>[],
  path: KeyPath,
  around: readonly Layer<Group>[] = [],
): Iterable<Key> {
  const { properties, items, required = [] } = node;
  const [given] = layers;
  if (given === undefined && required.length > 0 && node.default === undefined) return;
  const isGrouped = given === undefined || isGroup(given.raw);
  if (mayHoldSecret(node)) yield { node, given, path };
  else if (properties !== undefined && isGrouped)
    yield* keysOfGroup(properties, layers as readonly Layer<Group>[], path);
  else if (items?.properties !== undefined && Array.isArray(given?.raw))
    for (const [at, raw] of given.raw.entries())
      yield* keysOf(items, [{ raw, path: [...given.path, at] }, ...around], [...path, at]);
  else yield { node, given, path };
}

function* keysOfGroup(properties: SchemaKeys, layers: readonly Layer<Group>[], path: KeyPath): Iterable<Key> {
  if (layers.length === 0 && LEFT_OUT.includes(String(path.at(-1)))) return;
  for (const [name, child] of Object.entries(properties)) {
    const all = layersWithin(layers, name);
    // A group with required keys is taken as a whole.
    const given = child.required === undefined ? all : all.slice(0, 1);
    if (given.length > 0 || path[0] !== "defaults")
      yield* keysOf(child, given, [...path, name], LAYERED_LISTS.includes(name) ? layersAround(layers) : []);
  }
}

/** The keys around the entries of a list that apply to entries without their own. */
function layersAround(layers: readonly Layer<Group>[]): Layer<Group>[] {
  const all = [...layersWithin(layers, "defaults"), ...layers] as Layer<Group>[];
  return all.map(({ raw, path }) => ({
    raw: Object.fromEntries(LAYERED.map((key) => [key, raw[key]])),
    path,
  }));
}

/** Describes a key that has no value: it is unknown, or not set. */
export function describeMissingKey(key: string): string {
  const known = knownKeys(SCHEMA, "");
  const plain = key.replace(/\[\d+\]/g, "");
  if (known.includes(plain)) return `${key} is not set, and has no default`;
  const nearest = nearestName(plain, known);
  return `there is no key ${JSON.stringify(key)}${nearest === undefined ? "" : `, did you mean ${nearest}?`}`;
}

function knownKeys(node: SchemaNode, path: string): string[] {
  const children = Object.entries(node.properties ?? node.items?.properties ?? {});
  return children.flatMap(([name, child]) => {
    const key = path === "" ? name : `${path}.${name}`;
    return [key, ...knownKeys(child, key)];
  });
}

/** Defaults that depend on other keys or on the environment. */
function computedDefault(
  key: string,
  { work, state }: Settings,
  env: Environment,
  before: ReadonlyMap<string, EffectiveValue>,
): { readonly value: unknown; readonly from: string } | undefined {
  const [, group = ""] = /^(.*handoff\.)manifest$/.exec(key) ?? [];
  const deliver = before.get(`${group}deliver`)?.value;
  if (deliver !== undefined) return { value: defaultManifest(deliver), from: DEFAULT };
  if (key.endsWith(".layout")) return before.get(key.replace(/\.routes\[\d+\]/, ""));
  if (key === "work") return { value: work, from: DEFAULT };
  if (key === "state") return { value: state, from: env["STATE_DIRECTORY"] ? "STATE_DIRECTORY" : DEFAULT };
  if (key.endsWith("service.clientId"))
    return { value: `file ${join(state, CLIENT_ID_FILE)}`, from: DEFAULT };
  const proxy = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"].find((name) => env[name]);
  if (!key.endsWith("service.proxy") || proxy === undefined) return undefined;
  return { value: withoutSecrets(env[proxy] ?? ""), from: proxy };
}

function mayHoldSecret(node: SchemaNode): boolean {
  return node.writeOnly === true || isSecret(node);
}

function isSecret(node: SchemaNode): boolean {
  return node.properties?.["credential"] === SECRET.properties.credential;
}

/** Makes paths absolute. A value that may hold a secret is replaced by its source, or loses its secret parts. */
function show(node: SchemaNode, value: unknown, path: KeyPath, draft: Draft): unknown {
  if (mayHoldSecret(node)) return showHidden(node, value, path, draft);
  const isPath = node.pattern === PATH.pattern && typeof value === "string";
  return isPath ? draft.resolvePath(path, value) : value;
}

function showHidden(node: SchemaNode, value: unknown, path: KeyPath, draft: Draft): unknown {
  if (isSecret(node)) return describeSecretKey(value as Parameters<typeof describeSecretKey>[0], path, draft);
  if (isGroup(value)) {
    const [[key, inner] = []] = Object.entries(value);
    const child = node.properties?.[key ?? ""];
    return child === undefined
      ? HIDDEN
      : { [key ?? ""]: showHidden(child, inner, [...path, key ?? ""], draft) };
  }
  if (typeof value !== "string") return HIDDEN;
  if (node.default === value || new RegExp(node.pattern ?? "^$", "u").test(value)) return value;
  return withoutSecrets(value);
}

/** An address without its user, password, query and fragment; the path of a webhook may be a secret too. */
function withoutSecrets(address: string): string {
  const url = URL.parse(address);
  if (url === null || url.host === "") return HIDDEN;
  const user = url.username + url.password === "" ? "" : `${HIDDEN}@`;
  const isHttp = url.protocol === "http:" || url.protocol === "https:";
  const rest = isHttp && url.pathname.length > 1 ? `/${HIDDEN}` : url.pathname;
  return `${url.protocol}//${user}${url.host}${rest}`;
}

function formatPlace({ name, line }: Place): string {
  return line === undefined ? name : `${name}:${line}`;
}
