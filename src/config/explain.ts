/** Checks a configuration against its schema, and explains each problem with a remedy. */
import type { ErrorObject } from "ajv/dist/2020.js";
import { describeUnknownKey, nearestName } from "../base/nearest.ts";
import { isGroup, type KeyPath, type Problems, showValue, variableFor } from "./draft.ts";
import { type RawSettings, SCHEMA } from "./schema.ts";
import { PATH, type SchemaNode, typesOf } from "./schema-nodes.ts";
import { findErrors } from "./validator.ts";

/** A refused value: its key, and the message about it. */
interface Refusal {
  readonly path: KeyPath;
  readonly message: string;
  readonly isMissing?: boolean;
}

/** Adds every problem, and returns the values without the refused ones. `required`: top-level keys. */
export function checkSchema(
  values: Record<string, unknown>,
  required: readonly string[],
  problems: Problems,
): RawSettings {
  const missing = required.filter((key) => values[key] === undefined).map((key) => missingKey([key], SCHEMA));
  const refusals = [...missing, ...findErrors(values).map((error) => explain(error, values))];
  if (refusals.length === 0) return values;
  const usable = structuredClone(values);
  const refused = new Set<string>();
  for (const { path, message, isMissing = false } of refusals) {
    const isReported = refused.has(path.join("\0")) || (isMissing && problems.has(path));
    if (!isReported) problems.add(path, message);
    refused.add(path.join("\0"));
    remove(usable, path);
  }
  return usable;
}

function explain({ instancePath, keyword, params }: ErrorObject, values: unknown): Refusal {
  const path = parsePointer(instancePath);
  const node = nodeAt(path);
  switch (keyword) {
    case "required":
      return missingKey([...path, String(params["missingProperty"])], node);
    case "additionalProperties": {
      const key = String(params["additionalProperty"]);
      const known = Object.keys(node.properties ?? {});
      // The unknown key may be the secret itself: it is not repeated.
      if (node.writeOnly) return { path, message: describeUnknownInSecret(key, known, node) };
      return { path: [...path, key], message: describeMisplacedKey(key) ?? describeUnknownKey(key, known) };
    }
    default:
      return { path, message: describeUnfit(valueAt(values, path), node) };
  }
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

function missingKey(path: KeyPath, node: SchemaNode): Refusal {
  const allowed = describeAllowed(node.properties?.[String(path.at(-1))]);
  const variable = path.length === 1 ? `, or set ${variableFor(path.map(String))}` : "";
  return { path, message: `is missing: give ${allowed}${variable}`, isMissing: true };
}

function describeUnknownInSecret(key: string, known: readonly string[], node: SchemaNode): string {
  const nearest = nearestName(key, known, () => 2);
  return `has an unknown key, ${nearest === undefined ? `must be ${node.title}` : `did you mean ${nearest}?`}`;
}

function describeUnfit(value: unknown, node: SchemaNode): string {
  const allowed = describeAllowed(node);
  const types = typesOf(node);
  if (value === null) return `has no value: give ${allowed}, or remove the key`;
  const takesSimple = types.includes("string") || !(types.includes("object") || types.includes("array"));
  const isSimple = typeof value !== "object" && takesSimple;
  const mayBeShown = isSimple && !node.writeOnly && value !== "";
  const subject = mayBeShown ? `${showValue(value)} is not` : "must be";
  return `${subject} ${allowed}${hintAtHome(value, node)}${hintAtForm(value, node)}`;
}

function hintAtHome(value: unknown, node: SchemaNode): string {
  const [sign] =
    node.pattern === PATH.pattern && typeof value === "string" ? (/^~|\$/.exec(value) ?? []) : [];
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

/** `/mailboxes/0/poll` → `["mailboxes", 0, "poll"]`. */
function parsePointer(pointer: string): KeyPath {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step));
}

/** The schema of a key that the schema has, or of an entry in a list. */
function nodeAt(path: KeyPath): SchemaNode {
  return path.reduce<SchemaNode>(
    (node, step) => (typeof step === "number" ? node.items : node.properties?.[step]) ?? node,
    SCHEMA,
  );
}

function valueAt(values: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>((holder, step) => {
    if (typeof holder !== "object" || holder === null) return undefined;
    return (holder as Record<string, unknown>)[String(step)];
  }, values);
}

/** Leaves a hole in a list, so that later entries keep their number. */
function remove(values: Record<string, unknown>, path: KeyPath): void {
  const holder = valueAt(values, path.slice(0, -1));
  const last = path.at(-1);
  if (last === undefined || typeof holder !== "object" || holder === null) return;
  if (Array.isArray(holder) && typeof last === "number") holder[last] = undefined;
  else delete (holder as Record<string, unknown>)[String(last)];
}
