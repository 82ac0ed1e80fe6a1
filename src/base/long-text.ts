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

/**
 * Parses the lines of such a text. Each object of its lists is parsed by itself and passed to `onItem`, and the result has an
 * empty list instead. All else may have `maxCharacters`. Throws `SyntaxError`, and what `onItem` throws.
 */
export async function parseLongJson(
  lines: AsyncIterable<readonly string[]>,
  maxCharacters: number,
  onItem: (item: unknown, list: string) => void,
): Promise<unknown> {
  const counts: Record<string, number> = {};
  let [rest, item, list, items] = ["", "", "", 0];
  const take = (line: string) => {
    if (item !== "" && (line === "    }" || line === "    },")) {
      onItem(JSON.parse(`${item}}`), list);
      counts[list] = (counts[list] ?? 0) + 1;
      items++;
      item = "";
      // Stands for the item, so that its comma counts.
      rest += line.slice(4).replace("}", "0");
    } else if (item !== "" || line === "    {") item += line;
    else {
      list = /^ {2}"(\w+)": \[$/.exec(line)?.[1] ?? list;
      rest += line;
    }
    if (Math.max(item.length, rest.length - 2 * items) > maxCharacters) throw new SyntaxError();
  };
  for await (const some of lines) for (const line of some) take(line);
  const whole = JSON.parse(rest + item);
  for (const [name, count] of Object.entries(counts)) {
    if (whole?.[name]?.length !== count) throw new SyntaxError();
    whole[name] = [];
  }
  return whole;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
