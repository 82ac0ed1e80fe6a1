/** The `fields` expression of polling: which parts of a transfer the service shall send. */
import { Fault } from "../base/faults.ts";

/** Fields that the model holds; `true` is a leaf, or an object taken whole. */
export const MODEL_FIELDS = {
  trackingId: true,
  status: { sender: { email: true }, recipients: true, state: true },
  transfer: {
    recipients: { to: true, cc: true },
    expirationDate: true,
    securityMode: { config: { passwordMode: true } },
  },
} as const;

/** Every path that the interface names, and those that services are known to have. */
export const KNOWN_FIELDS = {
  ...MODEL_FIELDS,
  transfer: {
    ...MODEL_FIELDS.transfer,
    confidentialMessageFileId: true,
    files: true,
    notificationMessage: true,
    fileChecksumAlgorithm: true,
  },
} as const;

type Selection<Known> = { readonly [Name in keyof Known]?: true | Selection<Known[Name]> };

/** A choice from the known fields. The tracking-id is always part of it: without it an entry is of no use. */
export type FieldSelection = Selection<Omit<typeof KNOWN_FIELDS, "trackingId">> & {
  readonly trackingId: true;
};

/** A choice from any fields, known or not. */
export interface FieldTree {
  readonly [name: string]: true | FieldTree;
}

/** Deeper than any record. */
const DEEPEST = 20;

/** `{ trackingId: true, status: { state: true } }` → `trackingId,status(state)`. */
export function formatFields(selection: FieldSelection | FieldTree): string {
  return formatTree(selection as FieldTree);
}

/**
 * The reverse, for an expression that a person wrote. The tracking-id is added where it is missing. Names need not be known:
 * a service may have more. Throws `CONFIG_INVALID` where the expression is malformed.
 */
export function parseFields(expression: string): FieldTree {
  const reader: Reader = { tokens: expression.match(/[(),]|[^(),\s]+/g) ?? [], next: 0 };
  const tree = readTree(reader, "fields", 1);
  const rest = reader.tokens[reader.next];
  if (rest !== undefined) throw badFields(`"${rest}" is one too many`);
  if ((tree["trackingId"] ?? true) !== true) throw badFields("trackingId has no parts to choose from");
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
