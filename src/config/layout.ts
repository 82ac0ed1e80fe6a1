/** Which layouts can be used: relative, made of known placeholders, and never one folder for two transfers. */
import { nearestName } from "../base/nearest.ts";
import { PLACEHOLDERS } from "../model/layout.ts";

const NAMES: readonly string[] = PLACEHOLDERS;

/** What is wrong with it, in a sentence; `undefined` for nothing. */
export function describeWrongLayout(layout: string): string | undefined {
  if (layout.startsWith("/")) return "must be relative: it begins inside the inbox";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (/[\\\u0000-\u001f]/.test(layout)) return "must not hold backslashes or control characters";
  const segments = layout.split("/");
  if (segments.some((segment) => segment.trim() === "")) return "must not hold an empty part between slashes";
  if (segments.some((segment) => segment.trim().startsWith("."))) {
    return "must not hold a part that begins with a dot";
  }
  const unknown = layout.match(/\{[^{}]*\}/g)?.find((found) => !NAMES.includes(found.slice(1, -1)));
  if (unknown !== undefined) return describeUnknownPlaceholder(unknown);
  if (/[{}]/.test(layout.replace(/\{[^{}]*\}/g, ""))) return "holds a { or } without its other half";
  if (!/\{(trackingId|transferId)\}/.test(layout)) {
    return "must hold {trackingId} or {transferId}: otherwise different transfers would meet in one folder";
  }
  return undefined;
}

function describeUnknownPlaceholder(found: string): string {
  const nearest = nearestName(found.slice(1, -1), NAMES);
  const known = NAMES.map((name) => `{${name}}`).join(" ");
  return `holds the unknown placeholder ${found}, ${nearest === undefined ? `known are ${known}` : `did you mean {${nearest}}?`}`;
}
