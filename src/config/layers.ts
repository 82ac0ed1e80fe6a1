/** A group of keys that may be set in several places, such as for all mailboxes and for one of them. */
import type { Draft, Given, KeyPath } from "./draft.ts";
import { READ, type ReadKeys, type SchemaKeys, type SchemaNode, type WrittenKeys } from "./schema-nodes.ts";

/** The group in one place. */
export interface Layer<Raw> {
  readonly raw: Raw;
  readonly path: KeyPath;
}

/** A key from the first layer that sets it. */
export function pick<Raw, Key extends keyof Raw & string>(
  layers: readonly Layer<Raw>[],
  key: Key,
): Given<NonNullable<Raw[Key]>> | undefined {
  const [first] = layersWithin(layers, key);
  return first && { value: first.raw, path: first.path };
}

/** The layers of a sub-group such as `keep`: one from each layer that sets it. */
export function layersWithin<Raw, Key extends keyof Raw & string>(
  layers: readonly Layer<Raw>[],
  key: Key,
): Layer<NonNullable<Raw[Key]>>[] {
  return layers.flatMap(({ raw, path }) => {
    const value = raw[key];
    return value === undefined || value === null ? [] : [{ raw: value, path: [...path, key] }];
  });
}

/** Reads every key: from the first layer that sets it, or its default. Problems and warnings go to the draft. */
export async function readKeys<Keys extends SchemaKeys>(
  keys: Keys,
  layers: readonly Layer<WrittenKeys<Keys>>[],
  draft: Draft,
): Promise<ReadKeys<Keys>> {
  const read: Record<string, unknown> = {};
  for (const [key, node] of Object.entries<SchemaNode>(keys)) {
    const own: Layer<unknown>[] = layersWithin(layers, key);
    const isMerged = node.properties !== undefined && node[READ] === undefined;
    read[key] = isMerged
      ? await readKeys(node.properties, own as Layer<WrittenKeys<SchemaKeys>>[], draft)
      : await readValue(node, own[0] ?? { raw: node.default, path: [] }, draft);
  }
  return read as ReadKeys<Keys>;
}

function readValue(node: SchemaNode, { raw, path }: Layer<unknown>, draft: Draft): unknown {
  if (raw === undefined) return undefined;
  if (node[READ] !== undefined) return node[READ](raw as never, path, draft);
  return Array.isArray(raw) ? raw.filter((each) => each !== undefined) : raw;
}
