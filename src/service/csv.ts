/** Every plausible reading of a CSV text whose delimiter and quoting are not known, the strictest first. */

export interface CsvReading {
  readonly records: readonly (readonly string[])[];
  readonly delimiter: string;
}

/** What all readings of one file may cost together: hostile text must not keep us busy. */
export interface CsvBudget {
  characters: number;
  readonly mostRecords: number;
}

/** `strict`: as the standard says; `forgiving`: stray quotes and blanks before a cell do no harm; `none`: quotes mean nothing. */
type Quoting = "strict" | "forgiving" | "none";

const DELIMITERS = [",", ";", "\t"];

/** On average: a name whose delimiters are not quoted has several. */
const MOST_CELLS_PER_RECORD = 8;

/** What a cell costs, compared with a character of it. */
const CHARACTERS_PER_CELL = 10;

/** How many lines a subject may have that breaks the quoting of what follows it. */
const MOST_BROKEN_LINES = 64;

/**
 * By each quoting in turn; then strictly again, but from a later line on, because a line written without care can break
 * all that follows.
 */
export function* readCsv(text: string, budget: CsvBudget): Generator<CsvReading> {
  const delimiters = DELIMITERS.filter((delimiter) => text.includes(delimiter));
  for (const quoting of ["strict", "forgiving", "none"] as const) {
    for (const delimiter of delimiters) {
      const records = parse(text, 0, delimiter, quoting, budget);
      if (records !== undefined) yield { records, delimiter };
    }
  }
  for (const { end, next } of lineEnds(text)) {
    for (const delimiter of delimiters) {
      const records = parse(text, next, delimiter, "strict", budget);
      if (records !== undefined) {
        yield { records: [text.slice(0, end).split(delimiter), ...records], delimiter };
      }
    }
  }
}

/** `undefined` where the text is not CSV of that kind, has far more records or cells than it should, or the budget is spent. */
function parse(
  text: string,
  start: number,
  delimiter: string,
  quoting: Quoting,
  budget: CsvBudget,
): string[][] | undefined {
  if (budget.characters <= 0) return undefined;
  const reader = new CellReader(text, start, delimiter, quoting);
  const records: string[][] = [];
  let record: string[] = [];
  let isRead = false;
  let cells = 0;
  const mostCells = budget.mostRecords * MOST_CELLS_PER_RECORD;
  for (; cells < mostCells && records.length < budget.mostRecords && !isRead; cells++) {
    const cell = reader.read();
    if (cell === undefined) break;
    record.push(cell);
    if (reader.skip(delimiter)) continue;
    records.push(record);
    record = [];
    isRead = !reader.skipLineEnd();
  }
  budget.characters -= reader.at - start + cells * CHARACTERS_PER_CELL;
  return isRead ? tidy(records) : undefined;
}

/** Reads each character once, whatever the text is. */
class CellReader {
  at: number;
  readonly #text: string;
  readonly #delimiter: string;
  readonly #quoting: Quoting;
  /** Up to the delimiter or the end of the line. */
  readonly #plain: RegExp;

  constructor(text: string, start: number, delimiter: string, quoting: Quoting) {
    this.at = start;
    this.#text = text;
    this.#delimiter = delimiter;
    this.#quoting = quoting;
    this.#plain = new RegExp(`[^${delimiter}\r\n]*`, "y");
  }

  /** `undefined` where its quotes are not as they should be. */
  read(): string | undefined {
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

/** Without empty records, and without the empty last cell of each that a delimiter at the end of every line makes. */
function tidy(records: string[][]): string[][] {
  const filled = records.filter((record) => record.some((cell) => cell.trim() !== ""));
  const trailing = filled.length > 0 && filled.every((record) => record.length > 2 && record.at(-1) === "");
  return trailing ? filled.map((record) => record.slice(0, -1)) : filled;
}

function* lineEnds(text: string): Generator<{ end: number; next: number }> {
  const lineEnd = /\r\n|\n|\r/g;
  for (let line = 0; line < MOST_BROKEN_LINES; line++) {
    const end = lineEnd.exec(text);
    if (end === null) return;
    yield { end: end.index, next: lineEnd.lastIndex };
  }
}
