/** The `layout` of a mailbox or route: the folder of a transfer inside the inbox. Also placeholders such as `{sender}`. */
import { nearestName } from "../base/nearest.ts";
import { PLACEHOLDERS } from "../model/mailbox.ts";
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { type SchemaNode, TEXT } from "./schema-nodes.ts";

export const LAYOUT = {
  ...TEXT,
  title: "a relative path with placeholders",
  maxLength: 1000,
} as const satisfies SchemaNode;

/** `isShared`: transfers share the folder, because files are delivered one by one. Problems go to the draft. */
export function readLayout(layout: string, path: KeyPath, isShared: boolean, { problems }: Draft): string {
  const wrong = describeWrongLayout(layout, isShared);
  if (wrong !== undefined) problems.add(path, `${showValue(layout)} ${wrong}`);
  return layout;
}

/** Layouts are relative, use known placeholders, and give each transfer its own folder unless they share one. */
function describeWrongLayout(layout: string, isShared: boolean): string | undefined {
  if (layout.startsWith("/")) return "must be relative: it begins inside the inbox";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for them.
  if (/[\\\u0000-\u001f]/.test(layout)) return "must not contain backslashes or control characters";
  const segments = layout.split("/");
  if (segments.some((segment) => segment.trim() === ""))
    return "must not contain an empty part between slashes";
  if (segments.some((segment) => segment.trim().startsWith("."))) {
    return "must not contain a part that begins with a dot";
  }
  const wrong = describeWrongPlaceholders(layout, PLACEHOLDERS);
  if (wrong !== undefined) return wrong;
  if (!isShared && !/\{(trackingId|transferId)\}/.test(layout)) {
    return "must contain {trackingId} or {transferId}: otherwise two transfers could have the same folder";
  }
  return undefined;
}

/** `undefined` if every placeholder is known and every brace has its pair. */
export function describeWrongPlaceholders(text: string, known: readonly string[]): string | undefined {
  const unknown = text.match(/\{[^{}]*\}/g)?.find((found) => !known.includes(found.slice(1, -1)));
  if (unknown !== undefined) return describeUnknown(unknown, known);
  if (/[{}]/.test(text.replace(/\{[^{}]*\}/g, ""))) return "contains an unmatched { or }";
  return undefined;
}

function describeUnknown(found: string, names: readonly string[]): string {
  const nearest = nearestName(found.slice(1, -1), names);
  const known = names.map((name) => `{${name}}`).join(" ");
  return `contains the unknown placeholder ${found}, ${nearest === undefined ? `known: ${known}` : `did you mean {${nearest}}?`}`;
}
