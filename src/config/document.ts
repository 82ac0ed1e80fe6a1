/** Parses a YAML file into plain values, and finds the line of each value for messages. */
import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type ParsedNode,
  parseDocument,
  type ScalarTag,
  visit,
} from "yaml";
import { isGroup, type KeyPath } from "./draft.ts";

interface Position {
  readonly line: number;
  readonly column: number;
}

interface YamlError extends Position {
  readonly message: string;
}

export interface ConfigDocument {
  readonly values: Readonly<Record<string, unknown>>;
  /** With errors, the values are empty. Messages never quote the file, which may hold secrets. */
  readonly errors: readonly YamlError[];
  /** The position of a key or of a list entry; `undefined` for a missing one. */
  locate(path: KeyPath): Position | undefined;
}

/** Thousands of aliases would exhaust memory; real files have a few. */
const MAX_ALIASES = 100;

/** One mistake causes many errors; only the first are reported. */
const MAX_ERRORS = 3;

/** Numbers with a leading zero stay text: `0640` is a mode, and `007` may be a password. */
const LEADING_ZERO: ScalarTag = {
  tag: "tag:yaml.org,2002:str",
  default: true,
  test: /^0o?\d+$/,
  resolve: (text) => text,
};

export function parseConfigDocument(text: string): ConfigDocument {
  const lines = new LineCounter();
  const position = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  try {
    const document = parseDocument(text, {
      version: "1.2",
      lineCounter: lines,
      prettyErrors: false,
      stringKeys: true,
      resolveKnownTags: false,
      logLevel: "error",
      customTags: (tags) => [LEADING_ZERO, ...tags],
    });
    const errors = findErrors(document, text);
    if (errors.length > 0) return broken(...errors.map(({ at, message }) => ({ ...position(at), message })));
    const values: unknown = document.toJS({ maxAliasCount: MAX_ALIASES }) ?? {};
    if (!isGroup(values))
      return broken({ ...START, message: "the file must have keys such as inbox: /srv/inbox" });
    // Throws for a circular value.
    JSON.stringify(values);
    return {
      values,
      errors: [],
      locate: (path) => {
        const offset = findOffset(document, path);
        return offset === undefined ? undefined : position(offset);
      },
    };
  } catch {
    // The parser's own message may quote the file.
    return broken({ ...START, message: "this YAML is nested too deeply, or has too many aliases" });
  }
}

const START: Position = { line: 1, column: 1 };

function broken(...errors: readonly YamlError[]): ConfigDocument {
  return { values: {}, errors, locate: () => undefined };
}

/** `at`: an offset in the text. */
function findErrors(document: Document.Parsed, text: string) {
  // An error after `layout: {mailbox}`, from which all other errors follow.
  const bare = document.errors.find(({ pos: [at] }) => /\{\w+\} *$/.test(text.slice(0, at)));
  if (bare !== undefined) return [{ at: bare.pos[0], message: QUOTE_PLACEHOLDERS }];
  const found = [...document.errors, ...document.warnings].map(({ pos: [at], code }) => ({
    at,
    message: MESSAGES[code] ?? "this is not valid YAML: check the quotes, colons and indentation here",
  }));
  visit(document, {
    Alias: (_key, alias) => {
      if (alias.resolve(document) !== undefined) return;
      found.push({ at: offsetOf(alias) ?? 0, message: "a value that begins with * must be in quotes" });
    },
  });
  const byOffset = new Map(found.toReversed().map((finding) => [finding.at, finding]));
  return [...byOffset.values()].toSorted((a, b) => a.at - b.at).slice(0, MAX_ERRORS);
}

const QUOTE_PLACEHOLDERS =
  'a value that begins with { must be in quotes, such as layout: "{mailbox}/{trackingId}"';

/** Our own messages: the parser's may quote a secret. */
const MESSAGES: Readonly<Partial<Record<ErrorCode, string>>> = {
  TAB_AS_INDENT: "tabs cannot be used for indentation: use spaces",
  DUPLICATE_KEY: "this key is already given above in the same group",
  BAD_INDENT: "the indentation does not fit the lines around it, or a bracket is not closed",
  BAD_ALIAS: "a value that begins with * or & must be in quotes",
  BAD_SCALAR_START: "a value that begins with this character must be in quotes",
  BAD_DQ_ESCAPE: "unknown escape: double a backslash, or use single quotes",
  BAD_DIRECTIVE: "a line must not begin with %",
  TAG_RESOLVE_FAILED: "a value that begins with ! must be in quotes",
  MULTIPLE_DOCS: "the file must have one document: remove the line ---",
  NON_STRING_KEY: "a key must be a plain word",
  BLOCK_AS_IMPLICIT_KEY: "a value that contains ': ' must be in quotes, or a line is indented wrongly",
  MISSING_CHAR: "something is missing here: a closing quote, bracket, comma or colon",
  MULTILINE_IMPLICIT_KEY: "a key must be followed by a colon on its line",
  RESOURCE_EXHAUSTION: "this YAML is nested too deeply",
};

function findOffset(document: Document.Parsed, path: KeyPath): number | undefined {
  let node: unknown = document.contents;
  let offset: number | undefined;
  for (const step of path) {
    const parent = isAlias(node) ? node.resolve(document) : node;
    const pair = isMap(parent)
      ? parent.items.find(({ key }) => isScalar(key) && key.value === step)
      : undefined;
    node = isSeq(parent) && typeof step === "number" ? parent.items[step] : pair?.value;
    offset = offsetOf(pair?.key ?? node);
    if (offset === undefined) return undefined;
  }
  return offset;
}

function offsetOf(node: unknown): number | undefined {
  return (node as Partial<ParsedNode> | null)?.range?.[0];
}
