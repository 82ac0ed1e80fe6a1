/** Fields of a listed transfer that a person asked for and the model does not hold, as the service sent them. */
import { type FieldTree, MODEL_FIELDS } from "./fields.ts";

/** Names of values that may carry a password, or give access to the transfer. */
const LINK = /(?:url|uri|href|link|password|token|secret)s?$/i;

/** Without links. `undefined` where the model holds all that was asked for. */
export function moreOf(entry: unknown, selection: FieldTree): unknown {
  return pick(entry, selection, MODEL_FIELDS);
}

function pick(value: unknown, wanted: true | FieldTree, inModel: true | FieldTree | undefined): unknown {
  if (wanted === true && inModel === true) return undefined;
  if (inModel === undefined || inModel === true || !isRecord(value)) return withoutLinks(value);
  const parts = Object.entries(value).flatMap(([name, part]) => {
    const partWanted = wanted === true || partOf(wanted, name);
    if (partWanted === undefined || LINK.test(name)) return [];
    const more = pick(part, partWanted, partOf(inModel, name));
    return more === undefined ? [] : [[name, more] as const];
  });
  return parts.length === 0 ? undefined : Object.fromEntries(parts);
}

function withoutLinks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutLinks);
  if (!isRecord(value)) return value;
  const parts = Object.entries(value).filter(([name]) => !LINK.test(name));
  return Object.fromEntries(parts.map(([name, part]) => [name, withoutLinks(part)]));
}

function partOf(tree: FieldTree, name: string): true | FieldTree | undefined {
  return Object.hasOwn(tree, name) ? tree[name] : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
