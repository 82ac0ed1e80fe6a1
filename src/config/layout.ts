/** Texts with placeholders such as `{sender}`, and patterns with `*` and `?`. */
import { nearestName } from "../base/nearest.ts";
import { PLACEHOLDERS } from "../model/mailbox.ts";
import { type Spot, showValue } from "./draft.ts";
import { type SchemaNode, TEXT } from "./schema-nodes.ts";

/** The folder of a transfer inside the inbox. */
export const LAYOUT = {
  ...TEXT,
  title: "a relative path with placeholders",
  maxLength: 1000,
} as const satisfies SchemaNode;

/** Layouts are relative, use known placeholders, and give each transfer its own folder unless `isShared`. */
export function describeWrongLayout(layout: string, isShared: boolean): string | undefined {
  const parts = layout.split("/").map((part) => part.trim());
  if (layout.startsWith("/")) return "must be relative: it begins inside the inbox";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for them.
  if (/[\\\u0000-\u001f]/.test(layout)) return "must not contain backslashes or control characters";
  if (parts.includes("")) return "must not contain an empty part between slashes";
  if (parts.some((part) => part.startsWith("."))) return "must not contain a part that begins with a dot";
  const wrong = describeWrongPlaceholders(layout, PLACEHOLDERS);
  if (wrong !== undefined || isShared || hasId(layout)) return wrong;
  return "must contain {trackingId} or {transferId}: otherwise two transfers could have the same folder";
}

export function hasId(text: string): boolean {
  return /\{(trackingId|transferId)\}/.test(text);
}

/** `undefined` if every placeholder is known and every brace has its pair. */
export function describeWrongPlaceholders(text: string, known: readonly string[]): string | undefined {
  const unknown = text.match(/\{[^{}]*\}/g)?.find((found) => !known.includes(found.slice(1, -1)));
  const hasOtherBrace = /[{}]/.test(text.replace(/\{[^{}]*\}/g, ""));
  if (unknown === undefined) return hasOtherBrace ? "contains an unmatched { or }" : undefined;
  const nearest = nearestName(unknown.slice(1, -1), known);
  const all = known.map((name) => `{${name}}`).join(" ");
  const help = nearest === undefined ? `known: ${all}` : `did you mean {${nearest}}?`;
  return `contains the unknown placeholder ${unknown}, ${help}`;
}

/** Matches `^…`, `.*` unless it follows a letter, `[a-z]`, `[…]+` and `\.`, which hardly occur in an address or a name. */
const EXPRESSION =
  /^\^|(^|[^\w*?])\.\*|\.\+|\.\*.*\$$|\[[^\]]*(a-z|A-Z|0-9)[^\]]*\]|\[[^\]]+\][+{]|\\[.dswDSW]/;

/** Warns of a pattern that was written as a regular expression. */
export function warnOfExpression(pattern: string, at: Spot): void {
  const isLikely = EXPRESSION.test(pattern) || (at.path.at(-1) === "subject" && pattern.includes(".*"));
  if (!isLikely) return;
  const simple = pattern
    .replace(/^\^|\$$/g, "")
    .replace(/(\[[^\]]+\]|\\[dswDSW]|\.)([*+]|\{[\d,]*\})/g, "*")
    .replace(/\[[^\]]+\]|\\[dswDSW]/g, "?")
    .replace(/\\(.)/g, "$1");
  at.warn(
    `${showValue(pattern)} looks like a regular expression, but only * and ? are wildcards: write ${showValue(simple)}.`,
  );
}
