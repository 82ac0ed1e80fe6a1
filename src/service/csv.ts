/** Every plausible reading of a CSV file whose encoding, delimiter and quoting are unknown, the strictest first. */
import { inTurns } from "../base/timers.ts";

export interface CsvReading {
  readonly records: readonly (readonly string[])[];
  readonly delimiter: string;
}

/** Limits the cost of all readings of one file together, because the text may be hostile. */
export interface CsvBudget {
  characters: number;
  readonly maxRecords: number;
}

/** `strict`: RFC 4180; `forgiving`: allows stray quotes and blanks before a cell; `none`: quotes are ordinary characters. */
type Quoting = "strict" | "forgiving" | "none";

const DELIMITERS = [",", ";", "\t"];

/** On average: a name with unquoted delimiters takes several cells. */
const MAX_CELLS_PER_RECORD = 8;

/** The cost of a cell, in characters of the budget. */
const CHARACTERS_PER_CELL = 10;

/** Lines of a subject that may break the quoting of the following lines. */
const MAX_BROKEN_LINES = 64;

/** Tries each quoting; then strict again from each later line on, because one badly quoted line breaks all that follow. */
export async function* readCsv(text: string, budget: CsvBudget): AsyncGenerator<CsvReading> {
  const delimiters = DELIMITERS.filter((delimiter) => text.includes(delimiter));
  for (const quoting of ["strict", "forgiving", "none"] as const) {
    for (const delimiter of delimiters) {
      const records = await parse(text, 0, delimiter, quoting, budget);
      if (records !== undefined) yield { records, delimiter };
    }
  }
  for (const { end, next } of lineEnds(text)) {
    for (const delimiter of delimiters) {
      const records = await parse(text, next, delimiter, "strict", budget);
      if (records !== undefined) {
        yield { records: [text.slice(0, end).split(delimiter), ...records], delimiter };
      }
    }
  }
}

/** `undefined` if the text is not CSV of that kind, has far too many records or cells, or the budget is spent. */
async function parse(
  text: string,
  start: number,
  delimiter: string,
  quoting: Quoting,
  budget: CsvBudget,
): Promise<string[][] | undefined> {
  if (budget.characters <= 0) return undefined;
  const reader = new CellReader(text, start, delimiter, quoting);
  const records: string[][] = [];
  for await (const record of inTurns(reader.records(budget.maxRecords * MAX_CELLS_PER_RECORD))) {
    records.push(record);
    if (records.length >= budget.maxRecords) break;
  }
  budget.characters -= reader.at - start + reader.cells * CHARACTERS_PER_CELL;
  return reader.isAtEnd ? tidy(records) : undefined;
}

/** Reads each character once, so that no text is expensive. */
class CellReader {
  at: number;
  readonly #text: string;
  readonly #delimiter: string;
  readonly #quoting: Quoting;
  /** Matches up to the delimiter or the end of the line. */
  readonly #plain: RegExp;
  isAtEnd = false;
  /** Read so far. */
  cells = 0;

  constructor(text: string, start: number, delimiter: string, quoting: Quoting) {
    this.at = start;
    this.#text = text;
    this.#delimiter = delimiter;
    this.#quoting = quoting;
    this.#plain = new RegExp(`[^${delimiter}\r\n]*`, "y");
  }

  /** Ends before a cell whose quotes are wrong, and after this many cells. */
  *records(maxCells: number): Generator<string[]> {
    let record: string[] = [];
    for (; this.cells < maxCells && !this.isAtEnd; this.cells++) {
      const cell = this.#read();
      if (cell === undefined) return;
      record.push(cell);
      if (this.skip(this.#delimiter)) continue;
      this.isAtEnd = !this.skipLineEnd();
      yield record;
      record = [];
    }
  }

  /** `undefined` if its quotes are wrong. */
  #read(): string | undefined {
    if (this.#quoting === "forgiving")
      while (this.skip(" ") || (this.#delimiter !== "\t" && this.skip("\t")));
    if (this.#quoting !== "none" && this.#text[this.at] === '"') return this.#readQuoted();
    this.#plain.lastIndex = this.at;
    const [cell = ""] = this.#plain.exec(this.#text) ?? [];
    this.at += cell.length;
    return this.#quoting === "strict" && cell.includes('"') ? undefined : cell;
  }

  skip(character: string): boolean {
    if (this.#text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  skipLineEnd(): boolean {
    return this.skip("\r") ? this.skip("\n") || true : this.skip("\n");
  }

  #readQuoted(): string | undefined {
    const start = this.at + 1;
    for (let from = start; ; ) {
      const quote = this.#text.indexOf('"', from);
      this.at = quote < 0 ? this.#text.length : quote + 1;
      if (quote < 0) return undefined;
      const isDoubled = this.#text[this.at] === '"';
      if (!isDoubled && this.#isAtEndOfCell()) {
        return this.#text.slice(start, quote).replaceAll('""', '"');
      }
      if (!isDoubled && this.#quoting === "strict") return undefined;
      from = quote + (isDoubled ? 2 : 1);
    }
  }

  #isAtEndOfCell(): boolean {
    const next = this.#text[this.at];
    return next === undefined || next === this.#delimiter || next === "\r" || next === "\n";
  }
}

/** Removes empty records, and the empty last cells if every line ends with a delimiter. */
function tidy(records: string[][]): string[][] {
  const filled = records.filter((record) => record.some((cell) => cell.trim() !== ""));
  const trailing = filled.length > 0 && filled.every((record) => record.length > 2 && record.at(-1) === "");
  return trailing ? filled.map((record) => record.slice(0, -1)) : filled;
}

function* lineEnds(text: string): Generator<{ end: number; next: number }> {
  const lineEnd = /\r\n|\n|\r/g;
  for (let line = 0; line < MAX_BROKEN_LINES; line++) {
    const end = lineEnd.exec(text);
    if (end === null) return;
    yield { end: end.index, next: lineEnd.lastIndex };
  }
}

/**
 * The texts that the bytes may mean, the likeliest first: by byte-order mark, by zero bytes, by Content-Type, then the usual
 * charsets. Lazy, so that a large text is in memory once.
 */
export function* decodeText(bytes: Uint8Array, contentType: string | undefined): Generator<string> {
  const marked = byteOrderMark(bytes);
  const likely =
    marked === undefined
      ? [charsetByZeros(bytes), declaredCharset(contentType), "utf-8", "windows-1252"]
      : [marked];
  for (const charset of new Set(likely)) {
    const text = charset === undefined ? undefined : decode(bytes, charset);
    if (text === undefined) continue;
    yield text;
    // Pure ASCII is the same in the remaining charsets.
    if (charset === "utf-8" && text.length === bytes.length) return;
  }
}

function declaredCharset(contentType: string | undefined): string | undefined {
  return /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(contentType ?? "")?.[1]?.toLowerCase();
}

function byteOrderMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return undefined;
}

/** UTF-16 without a mark is recognised by its zero bytes: names and checksums are mostly ASCII. */
function charsetByZeros(bytes: Uint8Array): string | undefined {
  const sample = bytes.subarray(0, 4096);
  const zeros = [0, 0];
  for (const [at, byte] of sample.entries()) if (byte === 0) zeros[at % 2] = (zeros[at % 2] ?? 0) + 1;
  const [even = 0, odd = 0] = zeros;
  if (Math.max(even, odd) < sample.length / 8) return undefined;
  return even > odd ? "utf-16be" : "utf-16le";
}

/** `undefined` if the bytes are invalid in that charset, or the charset is unknown. */
function decode(bytes: Uint8Array, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
