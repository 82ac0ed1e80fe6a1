/** The building blocks of the schema, and the TypeScript types derived from it. */
import type { Draft, KeyPath } from "./draft.ts";

/** The key of a node's reader: a symbol, which is no part of the JSON schema. */
export const READ = Symbol("read");

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
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
  readonly minProperties?: number;
  /** Set where the keys exclude each other. */
  readonly maxProperties?: 1;
  readonly items?: SchemaNode;
  readonly minItems?: number;
  /** The value may be a secret: no message shows it. */
  readonly writeOnly?: true;
  /**
   * Turns a value that the schema accepts into the one that the program uses, or a promise of it. Problems go to the draft.
   * Missing: the value is used as it is written.
   */
  readonly [READ]?: (value: never, path: KeyPath, draft: Draft) => unknown;
}

/**
 * The type of the values that the schema accepts. Every key is optional and lists have holes: refused values are left
 * out, so that the rest can still be checked.
 */
export type Written<Node extends SchemaNode> = WrittenAs<
  Node,
  Node["type"] extends readonly SchemaType[] ? Node["type"][number] : Node["type"]
>;

type WrittenAs<Node extends SchemaNode, Type> = Type extends "string"
  ? Node extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : string
  : Type extends "integer"
    ? number
    : Type extends "boolean"
      ? boolean
      : Type extends "array"
        ? Node extends { readonly items: infer Item extends SchemaNode }
          ? readonly (Written<Item> | undefined)[]
          : never
        : Node extends { readonly properties: infer Keys extends SchemaKeys }
          ? WrittenKeys<Keys>
          : never;

export type SchemaKeys = Readonly<Record<string, SchemaNode>>;

export type WrittenKeys<Keys extends SchemaKeys> = { readonly [Key in keyof Keys]?: Written<Keys[Key]> };

/** The type of the value that the program uses. */
type Read<Node extends SchemaNode> = Node extends {
  readonly [READ]: (...args: never[]) => infer Value;
}
  ? Awaited<Value>
  : Node extends { readonly type: "object"; readonly properties: infer Keys extends SchemaKeys }
    ? ReadKeys<Keys>
    : Written<Node> extends readonly (infer Item)[]
      ? readonly NonNullable<Item>[]
      : Written<Node>;

/** A key without a default is `undefined` if it is not set. A group has a value in any case. */
export type ReadKeys<Keys extends SchemaKeys> = {
  readonly [Key in keyof Keys]:
    | Read<Keys[Key]>
    | (Keys[Key] extends { readonly default: unknown } | Group ? never : undefined);
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

/** An absolute path for the program. Neither ~ nor variables are expanded. */
export const PATH = {
  type: "string",
  title: "a path",
  pattern: "^(?!.*\\$(\\{|[A-Z_]{2}))[^~\\u0000][^\\u0000]*$",
  [READ]: (text: string, path: KeyPath, draft: Draft) => draft.resolvePath(path, text),
} as const satisfies SchemaNode;

export const TEXT = { type: "string", title: "text", minLength: 1 } as const satisfies SchemaNode;

export const SWITCH = { type: "boolean", title: "true or false" } as const satisfies SchemaNode;

/** A host name or an IP address; IPv6 in brackets. */
export const HOST_PATTERN = "(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+)";
