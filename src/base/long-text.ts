/** Texts whose length a sender chooses. They are made and written in blocks, and never held in memory as a whole. */
import { inTurns } from "./timers.ts";

/** Makes the text anew at each call, in pieces. */
export type LongText = () => Iterable<string>;

export const NO_TEXT: LongText = () => [];

const BLOCK_CHARACTERS = 64 * 1024;

/** The text in blocks: at least one, which may be empty. */
export function blocksOf(text: LongText): AsyncIterable<string> {
  return inTurns(joinPieces(text()));
}

function* joinPieces(pieces: Iterable<string>): Generator<string> {
  let block = "";
  for (const piece of pieces) {
    block += piece;
    if (block.length < BLOCK_CHARACTERS) continue;
    yield block;
    block = "";
  }
  yield block;
}

/** The pieces of `JSON.stringify(value, null, 2)` and a line end. Each object of a list is a piece. */
export function* formatJson(value: object): Generator<string> {
  yield* piecesOf(value, "\n");
  yield "\n";
}

function* piecesOf(value: object, lineEnd: string): Generator<string> {
  if (!Object.values(value).some(isObject)) {
    yield JSON.stringify(value, null, 2).replaceAll("\n", lineEnd);
    return;
  }
  const isList = Array.isArray(value);
  let separator = isList ? "[" : "{";
  for (const [key, part] of Object.entries(value)) {
    if (part === undefined) continue;
    yield `${separator}${lineEnd}  ${isList ? "" : `${JSON.stringify(key)}: `}`;
    if (isObject(part)) yield* piecesOf(part, `${lineEnd}  `);
    else yield JSON.stringify(part);
    separator = ",";
  }
  yield `${lineEnd}${isList ? "]" : "}"}`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
