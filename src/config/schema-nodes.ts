/** The building blocks of the schema, and the TypeScript types derived from it. */
import type { Spot } from "./draft.ts";

/** The key of a node's reader: a symbol, which is no part of the JSON schema. */
export const READ = Symbol("read");

/** Keys that the entries of a list have from the groups around the list, unless they set them themselves. */
export const INHERITED = Symbol("inherited");

type SchemaType = "string" | "integer" | "boolean" | "object" | "array";

/** The part of JSON Schema (draft 2020-12) that the configuration uses. */
export interface SchemaNode {
  readonly type: SchemaType | readonly SchemaType[];
  /** The allowed values, as a phrase that completes "… is not" and "must be". */
  readonly title?: string;
  /** What the key means. */
  readonly description?: string;
  readonly default?: string | number | boolean;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: SchemaKeys;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
  readonly minProperties?: number;
  /** Set where the keys exclude each other. */
  readonly maxProperties?: 1;
  readonly items?: SchemaNode;
  readonly minItems?: number;
  /** The value may be a secret: no message shows it. */
  readonly writeOnly?: true;
  readonly [INHERITED]?: readonly string[];
  /**
   * Turns a value that the schema accepts into the one that the program uses, or a promise of it. A group has the values of
   * its keys; a list has those of its entries, with holes for refused ones. Missing: the value is used as it is.
   */
  readonly [READ]?: (value: never, at: Spot) => unknown;
}

export type SchemaKeys = Readonly<Record<string, SchemaNode>>;

/** The type of the value that the program uses. */
export type Read<Node extends SchemaNode> = Node extends {
  readonly [READ]: (...args: never[]) => infer Value;
}
  ? Awaited<Value>
  : Node extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Node extends { readonly type: "object"; readonly properties: infer Keys extends SchemaKeys }
      ? ReadKeys<Keys, Node extends { readonly required: readonly (infer Name)[] } ? Name : never>
      : Node extends { readonly type: "array"; readonly items: infer Item extends SchemaNode }
        ? readonly NonNullable<Read<Item>>[]
        : { string: string; integer: number; boolean: boolean }[Node["type"] & Simple];

type Simple = "string" | "integer" | "boolean";

/** The entries of a list, for its reader. */
export type ReadItems<Item extends SchemaNode> = readonly (Read<Item> | undefined)[];

/** A key without a default is `undefined` if it is not set, unless it is required. A group has a value in any case. */
export type ReadKeys<Keys extends SchemaKeys, Required = never> = {
  readonly [Key in keyof Keys]:
    | Read<Keys[Key]>
    | (Key extends Required
        ? never
        : Keys[Key] extends { readonly default: unknown } | Group
          ? never
          : undefined);
};

type Group = { readonly title: "a group of keys"; readonly required?: never };

export function typesOf(node: SchemaNode): readonly SchemaType[] {
  return typeof node.type === "string" ? [node.type] : node.type;
}

/** A key, and what it means. */
export function key<const Node extends SchemaNode>(node: Node, description: string) {
  return { ...node, description };
}

/** A group of keys, all of them optional. */
export function group<const Keys extends SchemaKeys>(properties: Keys, description: string) {
  return {
    type: "object",
    title: "a group of keys",
    properties,
    additionalProperties: false,
    description,
  } as const;
}

/** A group with required keys, or an entry of a list. */
export function entry<const Keys extends SchemaKeys, const Name extends keyof Keys & string>(
  title: string,
  required: readonly Name[],
  properties: Keys,
) {
  return { type: "object", title, properties, required, additionalProperties: false } as const;
}

/** A list of entries. */
export function list<const Item extends SchemaNode>(title: string, items: Item) {
  return { type: "array", title, items } as const;
}

/** An absolute path for the program. Neither ~ nor variables are expanded. */
export const PATH = {
  type: "string",
  title: "a path",
  pattern: "^(?!.*\\$(\\{|[A-Z_]{2}))[^~\\u0000][^\\u0000]*$",
  [READ]: (text: string, at: Spot) => at.resolve(text),
} as const satisfies SchemaNode;

export const TEXT = { type: "string", title: "text", minLength: 1 } as const satisfies SchemaNode;

export const SWITCH = { type: "boolean", title: "true or false" } as const satisfies SchemaNode;

/** A host name or an IP address; IPv6 in brackets. */
export const HOST_PATTERN = "(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+)";
