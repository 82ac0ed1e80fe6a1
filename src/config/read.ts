/** Reads values that the schema accepts into those that the program uses: one walk over schema and values. */
import { formatPath, isGroup, Spot } from "./draft.ts";
import { INHERITED, READ, type ReadKeys, type SchemaKeys, type SchemaNode } from "./schema-nodes.ts";

/** Reads the keys of a group: each from its first layer, or its default. Problems and warnings go to the draft. */
export async function readKeys<Keys extends SchemaKeys>(keys: Keys, at: Spot): Promise<ReadKeys<Keys>> {
  const read: Record<string, unknown> = {};
  for (const [name, node] of Object.entries<SchemaNode>(keys)) {
    read[name] = await readNode(node, spotOf(node, at, name), at);
  }
  return read as ReadKeys<Keys>;
}

/** The spot of a key in a group. Groups are merged key by key; of one with required keys, only the first layer counts. */
export function spotOf(node: SchemaNode, at: Spot, name: string): Spot {
  const isMerged = node.type === "object" && node.required === undefined;
  return isMerged ? at.at(name) : at.at(name).first;
}

/**
 * The entries of the list `at`. They inherit from the group `around` the list, and first from the key `defaults` in that
 * group. A refused entry is a hole without layers.
 */
export function entriesOf(item: SchemaNode, at: Spot, around: Spot): Spot[] {
  const inherited = item[INHERITED] ?? [];
  const common = [...around.at("defaults").layers, ...around.layers].map(({ raw, path }) => ({
    raw: Object.fromEntries(inherited.map((name) => [name, isGroup(raw) ? raw[name] : undefined])),
    path,
  }));
  return at
    .entries()
    .map((entry) => (entry.isSet() ? new Spot(at.draft, entry.own, [...entry.layers, ...common]) : entry));
}

function readNode(node: SchemaNode, at: Spot, around: Spot): Promise<unknown> {
  return node.type === "object" ? readGroup(node, at) : readValue(node, at, around);
}

/** `undefined` for a group that lacks a required key. */
async function readGroup(node: SchemaNode, at: Spot): Promise<unknown> {
  const { properties = {}, required = [], [READ]: reader } = node;
  if (!at.isSet() && required.length > 0) return undefined;
  const read = async () => {
    const values = await readKeys(properties, at);
    if (!required.every((name) => at.isSet(name))) return undefined;
    return reader === undefined ? values : reader(values as never, at);
  };
  const { groups } = at.draft;
  const id = at.layers.map(({ path }) => formatPath(path)).join(" ");
  const reading = groups.get(id) ?? read();
  // Read once: many mailboxes share it. Groups without a layer all have the same id.
  if (id !== "") groups.set(id, reading);
  return reading;
}

async function readValue(node: SchemaNode, at: Spot, around: Spot): Promise<unknown> {
  const { items, [READ]: reader } = node;
  let { raw: value = node.default } = at;
  if (value === undefined) return undefined;
  if (items !== undefined && Array.isArray(value)) {
    const entries: unknown[] = [];
    for (const entry of entriesOf(items, at, around))
      entries.push(entry.isSet() ? await readNode(items, entry, at) : undefined);
    value = reader === undefined ? entries.filter((entry) => entry !== undefined) : entries;
  }
  return reader === undefined ? value : reader(value as never, at);
}
