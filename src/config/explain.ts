/** Checks a configuration against its schema, and explains each problem with a remedy. */
import { describeUnknownKey, didYouMean } from "../base/nearest.ts";
import { isGroup, type KeyPath, type Problems, showValue, variableFor } from "./draft.ts";
import { SCHEMA } from "./schema.ts";
import { PATH, type SchemaNode, typesOf } from "./schema-nodes.ts";

/** Adds every problem, and returns the values without the refused ones. `required`: top-level keys. */
export function checkSchema(
  values: Record<string, unknown>,
  required: readonly string[],
  problems: Problems,
): unknown {
  return accept({ ...SCHEMA, required }, values, [], (path, message, isMissing) => {
    // A variable for the key was refused, so the key is not missing.
    const isKnown = isMissing && problems.has(path);
    if (!isKnown) problems.add(path, message);
    return undefined;
  });
}

type Refuse = (path: KeyPath, message: string, isMissing?: boolean) => undefined;

/** The value, with holes for what the schema refuses. A group or list that is refused as a whole is not looked into. */
export function accept(node: SchemaNode, value: unknown, path: KeyPath, refuse: Refuse): unknown {
  const { items } = node;
  if (!fits(value, node)) return refuse(path, describeUnfit(value, node));
  if (isGroup(value)) return acceptGroup(node, value, path, refuse);
  if (items === undefined || !Array.isArray(value)) return value;
  return value.map((entry, at) => accept(items, entry, [...path, at], refuse));
}

function acceptGroup(
  node: SchemaNode,
  group: Readonly<Record<string, unknown>>,
  path: KeyPath,
  refuse: Refuse,
): unknown {
  const { properties = {}, required = [] } = node;
  const known = Object.keys(properties);
  const unknown = Object.keys(group).filter((key) => !known.includes(key));
  const [first] = unknown;
  if (node.writeOnly && first !== undefined) return refuse(path, describeUnknownInSecret(first, known, node));
  for (const key of unknown)
    refuse([...path, key], describeMisplacedKey(key) ?? describeUnknownKey(key, known));
  for (const key of required)
    if (group[key] === undefined) refuse([...path, key], describeMissing(key, node, path), true);
  const accepted = Object.entries(properties)
    .filter(([key]) => Object.hasOwn(group, key))
    .map(([key, child]) => [key, accept(child, group[key], [...path, key], refuse)] as const)
    .filter(([, value]) => value !== undefined);
  return accepted.length < (node.minProperties ?? 0) ? undefined : Object.fromEntries(accepted);
}

/** Whether a value has one of the allowed types, and its limits. Its keys and entries are not looked at. */
function fits(value: unknown, node: SchemaNode): boolean {
  const types = typesOf(node);
  if (typeof value === "string") {
    const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern = "" } = node;
    const length = [...value].length;
    const isAllowed = node.enum?.includes(value) ?? new RegExp(pattern, "u").test(value);
    return types.includes("string") && isAllowed && length >= minLength && length <= maxLength;
  }
  if (typeof value === "number") {
    const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = node;
    return types.includes("integer") && Number.isInteger(value) && value >= minimum && value <= maximum;
  }
  if (Array.isArray(value)) return types.includes("array") && value.length >= (node.minItems ?? 0);
  if (!isGroup(value)) return typeof value === "boolean" && types.includes("boolean");
  const { minProperties = 0, maxProperties = Number.POSITIVE_INFINITY } = node;
  const count = Object.keys(value).length;
  return types.includes("object") && count >= minProperties && count <= maxProperties;
}

/** Names one or two top groups that have this key; `undefined` for others. */
function describeMisplacedKey(key: string): string | undefined {
  const groups = Object.entries<SchemaNode>(SCHEMA.properties).flatMap(([name, { properties, items }]) => [
    ...(properties?.[key] === undefined ? [] : [name]),
    ...(items?.properties?.[key] === undefined ? [] : [`${name}[]`]),
  ]);
  const isClear = groups.length === 1 || groups.length === 2;
  return isClear ? `unknown key here, it belongs to ${groups.join(" or ")}` : undefined;
}

function describeMissing(key: string, { properties }: SchemaNode, group: KeyPath): string {
  const variable = group.length === 0 ? `, or set ${variableFor([key])}` : "";
  return `is missing: give ${describeAllowed(properties?.[key])}${variable}`;
}

/** The unknown key may be the secret itself: it is not repeated. */
function describeUnknownInSecret(key: string, known: readonly string[], node: SchemaNode): string {
  return `has an unknown key, ${didYouMean(key, known, `must be ${node.title}`, () => 2)}`;
}

function describeUnfit(value: unknown, node: SchemaNode): string {
  const allowed = describeAllowed(node);
  const types = typesOf(node);
  if (value === null) return `has no value: give ${allowed}, or remove the key`;
  const takesOnlyGroup = !types.includes("string") && (types.includes("object") || types.includes("array"));
  const isHidden = typeof value === "object" || takesOnlyGroup || node.writeOnly || value === "";
  const subject = isHidden ? "must be" : `${showValue(value)} is not`;
  return `${subject} ${allowed}${hintAtHome(value, node)}${hintAtForm(value, node)}`;
}

function hintAtHome(value: unknown, node: SchemaNode): string {
  const path = node.pattern === PATH.pattern && typeof value === "string" ? value : "";
  const [sign] = /^~|\$/.exec(path) ?? [];
  return sign === undefined ? "" : `: ${sign} is not expanded, write the whole path from / on`;
}

/** For a value that YAML reads as another type, or that lacks its unit. */
function hintAtForm(value: unknown, node: SchemaNode): string {
  const types = typesOf(node);
  const takesText = types.includes("string");
  if (typeof value === "string" && !takesText) {
    if (/^(true|false|\d+)$/.test(value)) return ": write it without quotes";
    return types.includes("boolean") ? hintAtSwitch(value) : "";
  }
  // YAML reads an unquoted {mailbox} as a group.
  const isBare = takesText && isGroup(value) && Object.values(value).every((inner) => inner === null);
  if (isBare && !types.includes("object")) return ": put it in quotes, because it begins with {";
  if (!takesText || types.includes("integer")) return "";
  const unit = unitOf(node);
  // The value of a secret is never repeated.
  const isWithoutUnit = typeof value === "number" && unit !== "" && !node.writeOnly;
  if (isWithoutUnit && acceptsText(node, `${value}${unit}`)) return `: write ${value}${unit}`;
  const isPlain = typeof value === "number" || typeof value === "boolean";
  return isPlain && acceptsText(node, String(value)) ? ": put it in quotes" : "";
}

/** YAML reads these as text. */
function hintAtSwitch(value: string): string {
  if (/^(yes|on|y)$/i.test(value)) return ": write true";
  return /^(no|off|n)$/i.test(value) ? ": write false" : "";
}

/** The unit to suggest: that of the first example that is not in milliseconds, or days for a long duration. */
function unitOf({ title = "" }: SchemaNode): string {
  const [, , unit] = /such as (\d+ms, )?\d+([a-zA-Z]+(?:\/s)?)/.exec(title) ?? [];
  return /duration/.test(title) && unit === "m" ? "d" : (unit ?? "");
}

/** Whether the schema accepts this text; false if the schema alone cannot decide. */
function acceptsText({ pattern, enum: words, title = "" }: SchemaNode, text: string): boolean {
  if (words !== undefined) return words.includes(text);
  return pattern === undefined ? title.startsWith("text") : new RegExp(pattern, "u").test(text);
}

/** The allowed values of a key: `a duration such as 30s`. */
export function describeAllowed(node: SchemaNode | undefined): string {
  if (node?.enum !== undefined) {
    return node.enum.length === 1 ? node.enum.join() : `one of ${node.enum.join(", ")}`;
  }
  if (node?.title !== undefined) return node.title;
  return node?.minimum === undefined ? "a value" : `a whole number from ${node.minimum} to ${node.maximum}`;
}
