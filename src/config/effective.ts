/** The effective values of the configuration: each key with its value and its source, and without any secret. */
import { join } from "node:path";
import { nearestName } from "../base/nearest.ts";
import { Secret } from "../base/secret.ts";
import { CLIENT_ID_FILE } from "../model/token.ts";
import { openSource, type RawSecret, SECRET } from "./credentials.ts";
import { type Environment, formatPath, isGroup, type Place, type Spot } from "./draft.ts";
import { defaultManifest } from "./handoff.ts";
import { type LoadOptions, loadSettings } from "./load.ts";
import { entriesOf, spotOf } from "./read.ts";
import { SCHEMA } from "./schema.ts";
import { PATH, type SchemaKeys, type SchemaNode } from "./schema-nodes.ts";
import type { Settings } from "./settings.ts";
import { readSource } from "./source.ts";

export interface EffectiveValue {
  readonly key: string;
  /** A secret is described, never shown. */
  readonly value: unknown;
  /** `/etc/inlet/inlet.yaml:3`, the name of a variable, or `default`. */
  readonly from: string;
}

const DEFAULT = "default";
/** Groups that are listed only if they are set, as all groups with required keys are. Other groups show their defaults. */
const LEFT_OUT = ["redis", "check"];
const HIDDEN = String(new Secret(""));

/** In the order of the reference. Throws `CONFIG_INVALID`. Reads no secret, and runs no command. */
export async function readEffective(options: LoadOptions): Promise<EffectiveValue[]> {
  const settings = await loadSettings({ ...options, ignoreSecrets: true });
  const { at: root } = await readSource({ ...options, ignoreSecrets: true }, SCHEMA.required);
  const values = new Map<string, EffectiveValue>();
  for (const [node, at] of keysOf(SCHEMA, root, root)) {
    const key = formatPath(at.own);
    const shown = at.isSet()
      ? { value: show(node, at), from: formatPlace(root.draft.problems.placeOf(at.path)) }
      : (computedDefault(key, settings, options.env, values) ?? { value: node.default, from: DEFAULT });
    if (shown.value !== undefined) values.set(key, { ...shown, key });
  }
  return [...values.values()];
}

/** The keys at `at`, each with its node. Groups are not listed, only their keys. `around`: the group that holds `at`. */
function* keysOf(node: SchemaNode, at: Spot, around: Spot): Iterable<readonly [SchemaNode, Spot]> {
  const { properties, items, required = [] } = node;
  if (!at.isSet() && required.length > 0 && node.default === undefined) return;
  if (node.writeOnly || isSecret(node)) yield [node, at];
  else if (properties !== undefined && (!at.isSet() || isGroup(at.raw))) yield* keysWithin(properties, at);
  else if (items?.properties !== undefined && Array.isArray(at.raw))
    for (const entry of entriesOf(items, at, around)) yield* keysOf(items, entry, at);
  else yield [node, at];
}

function* keysWithin(properties: SchemaKeys, at: Spot): Iterable<readonly [SchemaNode, Spot]> {
  if (!at.isSet() && LEFT_OUT.includes(String(at.own.at(-1)))) return;
  for (const [name, child] of Object.entries(properties)) {
    const inner = spotOf(child, at, name);
    if (inner.isSet() || at.own[0] !== "defaults") yield* keysOf(child, inner, at);
  }
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

/** The default of a key whose default depends on other keys or on the environment. `found`: the values of earlier keys. */
function computedDefault(
  key: string,
  { work, state }: Settings,
  env: Environment,
  found: ReadonlyMap<string, EffectiveValue>,
): { readonly value: unknown; readonly from: string } | undefined {
  const [, group = ""] = /^(.*handoff\.)manifest$/.exec(key) ?? [];
  const deliver = found.get(`${group}deliver`)?.value;
  if (deliver !== undefined) return { value: defaultManifest(deliver), from: DEFAULT };
  if (key.endsWith(".layout")) return found.get(key.replace(/\.routes\[\d+\]/, ""));
  if (key === "work") return { value: work, from: DEFAULT };
  if (key === "state") return { value: state, from: env["STATE_DIRECTORY"] ? "STATE_DIRECTORY" : DEFAULT };
  if (key.endsWith("service.clientId"))
    return { value: `file ${join(state, CLIENT_ID_FILE)}`, from: DEFAULT };
  const proxy = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"].find((name) => env[name]);
  if (!key.endsWith("service.proxy") || proxy === undefined) return undefined;
  return { value: withoutSecrets(env[proxy] ?? ""), from: proxy };
}

function isSecret(node: SchemaNode): boolean {
  return node.properties?.["credential"] === SECRET.properties.credential;
}

/** Makes paths absolute. A value that may hold a secret is replaced by its source, or loses its secret parts. */
function show(node: SchemaNode, at: Spot): unknown {
  const { raw } = at;
  if (isSecret(node)) return typeof raw === "string" ? HIDDEN : openSource(raw as RawSecret, at).described;
  const isPath = node.pattern === PATH.pattern && typeof raw === "string";
  if (!node.writeOnly) return isPath ? at.resolve(raw) : raw;
  if (isGroup(raw)) return Object.fromEntries(Object.keys(raw).map((key) => [key, HIDDEN]));
  if (typeof raw !== "string") return HIDDEN;
  if (node.default === raw || new RegExp(node.pattern ?? "^$", "u").test(raw)) return raw;
  return withoutSecrets(raw);
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

function formatPlace({ name = "", line }: Partial<Place> = {}): string {
  return line === undefined ? name : `${name}:${line}`;
}
