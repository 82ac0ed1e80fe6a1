/** The `fields` expression of polling, which selects the parts of a transfer that the service sends. */
import { Fault } from "../base/faults.ts";

/** A selection of fields, known or not; `true` is a leaf or a whole object. It always has the tracking-id: an entry is useless without it. */
export interface FieldTree {
  readonly [name: string]: true | FieldTree;
}

/** Deeper than any transfer in a list. */
const DEEPEST = 20;

/** `{ trackingId: true, status: { state: true } }` → `trackingId,status(state)`. */
export function formatFields(tree: FieldTree): string {
  return Object.entries(tree)
    .map(([name, part]) => (part === true ? name : `${name}(${formatFields(part)})`))
    .join(",");
}

/**
 * Parses an expression that a person wrote, and adds the tracking-id if it is missing. Accepts unknown names, because a
 * service may have more fields. Throws `CONFIG_INVALID` for a malformed expression.
 */
export function parseFields(expression: string): FieldTree {
  const reader: Reader = { tokens: expression.match(/[(),]|[^(),\s]+/g) ?? [], next: 0 };
  const tree = readTree(reader, "fields", 1);
  const rest = reader.tokens[reader.next];
  if (rest !== undefined) throw badFields(`unexpected "${rest}"`);
  if ((tree["trackingId"] ?? true) !== true) throw badFields("trackingId has no parts to choose from");
  return { trackingId: true, ...tree };
}

interface Reader {
  readonly tokens: readonly string[];
  next: number;
}

function readTree(reader: Reader, parent: string, depth: number): FieldTree {
  if (depth > DEEPEST) throw badFields(`more than ${DEEPEST} names are nested`);
  const tree: Record<string, true | FieldTree> = {};
  do {
    const name = reader.tokens[reader.next++];
    if (name === undefined || "(),".includes(name)) throw badFields(`a name is missing in ${parent}`);
    if (!/^[a-z][\w.-]*$/i.test(name)) throw badFields(`${JSON.stringify(name)} is not a name`);
    tree[name] = take(reader, "(") ? readParts(reader, name, depth + 1) : true;
  } while (take(reader, ","));
  return tree;
}

function readParts(reader: Reader, name: string, depth: number): FieldTree {
  const tree = readTree(reader, name, depth);
  if (!take(reader, ")")) throw badFields(`")" is missing after the parts of ${name}`);
  return tree;
}

function take(reader: Reader, token: string): boolean {
  if (reader.tokens[reader.next] !== token) return false;
  reader.next++;
  return true;
}

function badFields(problem: string): Fault {
  return new Fault("CONFIG_INVALID", { detail: `the field selection cannot be read: ${problem}` });
}

/** Names of values that may hold a password, or give access to the transfer. */
const SECRET = /(?:url|uri|href|link|password|token|secret)s?$/i;

/** An entry as the service sent it, without links and secrets. */
export function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== "object" || value === null) return value;
  const parts = Object.entries(value).filter(([name]) => !SECRET.test(name));
  return Object.fromEntries(parts.map(([name, part]) => [name, withoutSecrets(part)]));
}
