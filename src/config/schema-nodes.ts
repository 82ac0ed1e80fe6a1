/** The building blocks of the schema: what a key may hold, in the words that messages, editors and documents share. */
import { DURATION_PATTERN, LONG_DURATION_PATTERN, MODE_PATTERN, SIZE_PATTERN } from "./units.ts";

type SchemaType = "string" | "integer" | "boolean" | "object" | "array";

/** As much of JSON Schema (draft 2020-12) as the configuration needs. */
export interface SchemaNode {
  readonly type: SchemaType | readonly SchemaType[];
  /** What is allowed, so that "… is not" or "must be" can stand before it. */
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
  /** One: the keys exclude each other. */
  readonly maxProperties?: 1;
  readonly items?: SchemaNode;
  readonly minItems?: number;
  /** The value is a secret or may hold one: it is never shown. */
  readonly writeOnly?: true;
}

export function typesOf(node: SchemaNode): readonly SchemaType[] {
  return typeof node.type === "string" ? [node.type] : node.type;
}

export const DURATION = {
  type: "string",
  title: "a duration such as 250ms, 30s, 5m or 1h",
  pattern: DURATION_PATTERN,
} as const satisfies SchemaNode;

export const LONG_DURATION = {
  type: "string",
  title: "forever, or a duration such as 30m, 12h or 7d",
  pattern: `^forever$|${LONG_DURATION_PATTERN}`,
} as const satisfies SchemaNode;

export const SIZE = {
  type: ["string", "integer"],
  title: "a size such as 10MiB, 1GB or a number of bytes",
  pattern: SIZE_PATTERN,
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
} as const satisfies SchemaNode;

export const MODE = {
  type: ["string", "integer"],
  title: 'three octal digits such as "0640"',
  pattern: MODE_PATTERN,
  minimum: 0,
  maximum: 0o777,
} as const satisfies SchemaNode;

export const PATH = {
  type: "string",
  title: "a path",
  pattern: "^[^~\\u0000][^\\u0000]*$",
} as const satisfies SchemaNode;

export const TEXT = { type: "string", title: "text", minLength: 1 } as const satisfies SchemaNode;

export const SWITCH = { type: "boolean", title: "true or false" } as const satisfies SchemaNode;

/** A secret in plain text, or where it is read from. */
export const SECRET = {
  type: ["string", "object"],
  title: "text, or one of { file: … }, { env: … }, { credential: … }, { command: [ … ] }",
  minLength: 1,
  properties: {
    file: {
      ...PATH,
      description: "A file that holds it; one line end at its end is dropped.",
      writeOnly: true,
    },
    env: { ...TEXT, description: "The environment variable that holds it.", writeOnly: true },
    credential: {
      type: "string",
      title: "a plain file name",
      pattern: "^(?!\\.{1,2}$)[^/\\u0000]+$",
      description: "The name of a systemd credential: a file in `$CREDENTIALS_DIRECTORY`.",
      writeOnly: true,
    },
    command: {
      type: "array",
      title: "a list of a program and its arguments",
      items: { type: "string", title: "text", writeOnly: true },
      minItems: 1,
      description: "A program that prints it, with its arguments. No shell is involved.",
      writeOnly: true,
    },
  },
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  writeOnly: true,
} as const satisfies SchemaNode;
