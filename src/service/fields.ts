/** The `fields` expression of polling: which parts of a transfer the service shall send. */
import { Fault } from "../base/faults.ts";

/** Every path that the interface names; `true` is a leaf, or an object taken whole. */
export const KNOWN_FIELDS = {
  trackingId: true,
  status: { sender: { email: true }, recipients: true, state: true },
  transfer: {
    recipients: { to: true, cc: true },
    expirationDate: true,
    securityMode: { config: { passwordMode: true } },
    confidentialMessageFileId: true,
  },
} as const;

type Selection<Known> = { readonly [Name in keyof Known]?: true | Selection<Known[Name]> };

/** A choice from the known fields. The tracking-id is always part of it: without it an entry is of no use. */
export type FieldSelection = Selection<Omit<typeof KNOWN_FIELDS, "trackingId">> & {
  readonly trackingId: true;
};

interface FieldTree {
  readonly [name: string]: true | FieldTree;
}

/** `{ trackingId: true, status: { state: true } }` → `trackingId,status(state)`. */
export function formatFields(selection: FieldSelection): string {
  return formatTree(selection as FieldTree);
}

/**
 * The reverse, for an expression that a person wrote. The tracking-id is added where it is missing.
 * Throws `CONFIG_INVALID` where the expression is malformed or names what the interface does not have.
 */
export function parseFields(expression: string): FieldSelection {
  const reader: Reader = { tokens: expression.match(/[(),]|[^(),\s]+/g) ?? [], next: 0 };
  const tree = readTree(reader, KNOWN_FIELDS, "fields");
  const rest = reader.tokens[reader.next];
  if (rest !== undefined) throw badFields(`"${rest}" is one too many`);
  return { trackingId: true, ...tree };
}

interface Reader {
  readonly tokens: readonly string[];
  next: number;
}

function formatTree(tree: FieldTree): string {
  return Object.entries(tree)
    .map(([name, part]) => (part === true ? name : `${name}(${formatTree(part)})`))
    .join(",");
}

function readTree(reader: Reader, known: FieldTree, parent: string): FieldTree {
  const tree: Record<string, true | FieldTree> = {};
  do {
    const name = reader.tokens[reader.next++];
    if (name === undefined || "(),".includes(name)) throw badFields(`a name is missing in ${parent}`);
    const parts = Object.hasOwn(known, name) ? known[name] : undefined;
    if (parts === undefined) {
      throw badFields(`"${name}" is not part of ${parent}, which has ${Object.keys(known).join(", ")}`);
    }
    tree[name] = take(reader, "(") ? readParts(reader, parts, name) : true;
  } while (take(reader, ","));
  return tree;
}

function readParts(reader: Reader, parts: true | FieldTree, name: string): FieldTree {
  if (parts === true) throw badFields(`${name} has no parts to choose from`);
  const tree = readTree(reader, parts, name);
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
