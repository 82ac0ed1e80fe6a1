/** Placeholders such as `{sender}` in layouts and names. */
import { nearestName } from "../base/nearest.ts";

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
