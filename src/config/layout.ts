/** The `layout` of a mailbox or route: the folder of a transfer inside the inbox. */
import { nearestName } from "../base/nearest.ts";
import { PLACEHOLDERS } from "../model/mailbox.ts";
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { type SchemaNode, TEXT } from "./schema-nodes.ts";

export const LAYOUT = {
  ...TEXT,
  title: "a relative path with placeholders",
  maxLength: 1000,
} as const satisfies SchemaNode;

/** Problems go to the draft. */
export function readLayout(layout: string, path: KeyPath, { problems }: Draft): string {
  const wrong = describeWrongLayout(layout);
  if (wrong !== undefined) problems.add(path, `${showValue(layout)} ${wrong}`);
  return layout;
}

const PLACEHOLDER_NAMES: readonly string[] = PLACEHOLDERS;

/** Layouts are relative, use known placeholders, and give each transfer its own folder. */
function describeWrongLayout(layout: string): string | undefined {
  if (layout.startsWith("/")) return "must be relative: it begins inside the inbox";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for them.
  if (/[\\\u0000-\u001f]/.test(layout)) return "must not contain backslashes or control characters";
  const segments = layout.split("/");
  if (segments.some((segment) => segment.trim() === ""))
    return "must not contain an empty part between slashes";
  if (segments.some((segment) => segment.trim().startsWith("."))) {
    return "must not contain a part that begins with a dot";
  }
  const unknown = layout
    .match(/\{[^{}]*\}/g)
    ?.find((found) => !PLACEHOLDER_NAMES.includes(found.slice(1, -1)));
  if (unknown !== undefined) return describeUnknownPlaceholder(unknown);
  if (/[{}]/.test(layout.replace(/\{[^{}]*\}/g, ""))) return "contains an unmatched { or }";
  if (!/\{(trackingId|transferId)\}/.test(layout)) {
    return "must contain {trackingId} or {transferId}: otherwise two transfers could have the same folder";
  }
  return undefined;
}

function describeUnknownPlaceholder(found: string): string {
  const nearest = nearestName(found.slice(1, -1), PLACEHOLDER_NAMES);
  const known = PLACEHOLDER_NAMES.map((name) => `{${name}}`).join(" ");
  return `contains the unknown placeholder ${found}, ${nearest === undefined ? `known: ${known}` : `did you mean {${nearest}}?`}`;
}
