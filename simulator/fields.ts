/** The `fields` parameter of polls, which selects parts of a transfer record. */
import { ServiceError } from "./errors.ts";

/** The selected parts by name; `all` selects everything below a name. */
export type Selection = ReadonlyMap<string, Selection | "all">;

/** The selectable names of the record, with the names below each. A leaf has none. */
interface FieldTree {
  readonly [name: string]: FieldTree;
}

export const DEFAULT_FIELDS = "trackingId,status(sender(email),recipients,state),transfer(recipients)";

/** Throws a ServiceError for a malformed expression or an unknown name. */
export function parseFields(
  expression: string,
  others: "select" | "refuse",
  refused: readonly string[] = [],
): Selection {
  const tokens = expression.match(/[(),]|[^(),\s]+/g) ?? [];
  const selection = parseList(tokens, others === "select" ? FIELDS : DOCUMENTED_FIELDS);
  if (tokens.length > 0) throw malformed();
  const isRefused = refused.some((part) => {
    const [name = "", below] = part.split(".");
    return isSelected(selection, name, below);
  });
  if (isRefused) throw new ServiceError("badValue", "fields");
  return selection;
}

/** Whether a part of the record is selected, at least partly. */
export function isSelected(selection: Selection, name: string, below?: string): boolean {
  const found = selection.get(name);
  return found !== undefined && (found === "all" || below === undefined || found.has(below));
}

/** The selected parts of a value; applies to each entry of an array. */
export function project(value: unknown, selection: Selection | "all"): unknown {
  if (selection === "all" || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((entry) => project(entry, selection));
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, part]) => {
      const wanted = selection.get(name);
      return wanted === undefined ? [] : [[name, project(part, wanted)]];
    }),
  );
}

const LEAF: FieldTree = {};
const ADDRESSES: FieldTree = { mail: LEAF };

const FIELDS: FieldTree = {
  trackingId: LEAF,
  status: {
    sender: { email: LEAF, notificationFailed: LEAF },
    recipients: {
      mail: LEAF,
      id: LEAF,
      downloadUrl: LEAF,
      fileDownloads: { id: LEAF, downloads: { downloadDate: LEAF, retrievalMethod: LEAF } },
      notificationFailed: LEAF,
    },
    files: { id: LEAF, removed: LEAF, removalCause: LEAF },
    warnings: LEAF,
    emlCreationFailed: LEAF,
    state: LEAF,
  },
  transfer: {
    sender: { name: LEAF },
    recipients: { to: ADDRESSES, cc: ADDRESSES, bcc: ADDRESSES },
    expirationDate: LEAF,
    fileChecksumAlgorithm: LEAF,
    files: { id: LEAF, fileName: LEAF, size: LEAF, checksum: LEAF, state: LEAF },
    confidentialMessageFileId: LEAF,
    notificationMessage: { subject: LEAF, body: LEAF },
    notificationMailLink: LEAF,
    securityMode: { name: LEAF, config: { passwordMode: LEAF } },
    senderLanguage: LEAF,
    recipientLanguage: LEAF,
  },
};

/** The fields that the interface documents. */
const DOCUMENTED_FIELDS: FieldTree = {
  trackingId: LEAF,
  status: { sender: { email: LEAF }, recipients: LEAF, state: LEAF },
  transfer: {
    recipients: { to: LEAF, cc: LEAF },
    expirationDate: LEAF,
    securityMode: { config: { passwordMode: LEAF } },
  },
};

/** Consumes names from the tokens, up to the end of this list. */
function parseList(tokens: string[], tree: FieldTree): Selection {
  const selection = new Map<string, Selection | "all">();
  for (;;) {
    const name = tokens.shift();
    if (name === undefined || /^[(),]$/.test(name)) throw malformed();
    const below = Object.hasOwn(tree, name) ? tree[name] : undefined;
    if (below === undefined) throw new ServiceError("badValue", "fields has an unknown name");
    const part = tokens[0] === "(" ? parseGroup(tokens, below) : "all";
    selection.set(name, unite(selection.get(name), part));
    if (tokens[0] !== ",") return selection;
    tokens.shift();
  }
}

function parseGroup(tokens: string[], tree: FieldTree): Selection {
  tokens.shift();
  const selection = parseList(tokens, tree);
  if (tokens.shift() !== ")") throw malformed();
  return selection;
}

/** Repeated names are merged. */
function unite(a: Selection | "all" | undefined, b: Selection | "all"): Selection | "all" {
  if (a === undefined) return b;
  if (a === "all" || b === "all") return "all";
  const united = new Map(a);
  for (const [name, part] of b) united.set(name, unite(united.get(name), part));
  return united;
}

function malformed(): ServiceError {
  return new ServiceError("badValue", "fields is malformed");
}
