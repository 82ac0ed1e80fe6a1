/** The effective values of the configuration: each key with its value and its source, and without any secret. */
import { join } from "node:path";
import { nearestName } from "../base/nearest.ts";
import { Secret } from "../base/secret.ts";
import { describeSecretKey, SECRET } from "./credentials.ts";
import { type Draft, type Environment, formatPath, type Given, type KeyPath, type Place } from "./draft.ts";
import { type LoadOptions, loadSettings } from "./load.ts";
import { CLIENT_ID_FILE } from "./memory.ts";
import { SCHEMA } from "./schema.ts";
import { PATH, type SchemaNode } from "./schema-nodes.ts";
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
const HIDDEN = String(new Secret(""));

/** In the order of the reference. Throws `CONFIG_INVALID`. Reads no secret, and runs no command. */
export async function readEffective(options: LoadOptions): Promise<EffectiveValue[]> {
  const settings = await loadSettings({ ...options, ignoreSecrets: true });
  const { raw, draft, placeOf } = await readSource({ ...options, ignoreSecrets: true }, SCHEMA.required);
  return [...keysOf(SCHEMA, raw, [])].flatMap(({ node, value, path }) => {
    const key = formatPath(path);
    const given = value === undefined ? findCommon(path, raw.defaults) : { value, path };
    const found =
      given === undefined
        ? (computedDefault(key, settings, draft.env) ?? { value: node.default, from: DEFAULT })
        : { value: show(node, given.value, given.path, draft), from: formatPlace(placeOf(given.path)) };
    return found.value === undefined ? [] : [{ key, ...found }];
  });
}

interface Key {
  readonly node: SchemaNode;
  /** `undefined` if it is not set. */
  readonly value: unknown;
  readonly path: KeyPath;
}

/** Every key, without the groups around them. */
function* keysOf(node: SchemaNode, value: unknown, path: KeyPath): Iterable<Key> {
  const { properties, items, required = [] } = node;
  if (value === undefined && path.length > 0 && required.length > 0 && node.default === undefined) return;
  const isList = Array.isArray(value) && items?.properties !== undefined;
  const isGrouped = properties !== undefined && (isGroup(value) || value === undefined);
  if (mayHoldSecret(node) || !(isList || isGrouped)) yield { node, value, path };
  else if (isList) for (const [at, item] of value.entries()) yield* keysOf(items, item, [...path, at]);
  else if (isGrouped) yield* keysOfGroup(properties, isGroup(value) ? value : undefined, path);
}

function* keysOfGroup(
  properties: Readonly<Record<string, SchemaNode>>,
  group: Readonly<Record<string, unknown>> | undefined,
  path: KeyPath,
): Iterable<Key> {
  if (group === undefined && LEFT_OUT.includes(formatPath(path))) return;
  for (const [name, child] of Object.entries(properties)) {
    const value = group?.[name];
    if (value !== undefined || !isInherited(path)) yield* keysOf(child, value, [...path, name]);
  }
}

/** The value in `defaults` of a key that a mailbox does not set. */
function findCommon(
  [first, , key, ...rest]: KeyPath,
  defaults: Readonly<Record<string, unknown>> = {},
): Given<unknown> | undefined {
  const value = first === "mailboxes" && rest.length === 0 ? defaults[String(key)] : undefined;
  return value === undefined ? undefined : { value, path: ["defaults", String(key)] };
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

/** Groups that show only the keys that are set: `defaults`, and groups of a mailbox that have common ones. */
function isInherited([first, , group]: KeyPath): boolean {
  return (
    first === "defaults" || (first === "mailboxes" && ["service", "check", "handoff"].includes(String(group)))
  );
}

/** Defaults that depend on other keys or on the environment. */
function computedDefault(
  key: string,
  { work, state }: Settings,
  env: Environment,
): { readonly value: unknown; readonly from: string } | undefined {
  if (key === "work") return { value: work, from: DEFAULT };
  if (key === "state") return { value: state, from: env["STATE_DIRECTORY"] ? "STATE_DIRECTORY" : DEFAULT };
  if (key === "service.clientId") return { value: `file ${join(state, CLIENT_ID_FILE)}`, from: DEFAULT };
  const proxy = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"].find((name) => env[name]);
  if (key !== "service.proxy" || proxy === undefined) return undefined;
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

function isGroup(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
