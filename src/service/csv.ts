/** Every plausible reading of a CSV text whose delimiter and quoting are not known, the strictest first. */
import { type Options, parse } from "csv-parse/sync";

export interface CsvReading {
  readonly records: readonly (readonly string[])[];
  readonly delimiter: string;
}

const DELIMITERS = [",", ";", "\t"];

/** How often, in all, a text may be parsed: hostile text must not keep us busy. */
const MOST_ROUNDS = 24;

/** How many lines a subject may have that breaks the quoting of what follows it. */
const MOST_BROKEN_LINES = 64;

const ANY_LINE_END = {
  record_delimiter: ["\r\n", "\n", "\r"],
  skip_empty_lines: true,
  relax_column_count: true,
};
const STRICT: Options = { ...ANY_LINE_END };
const FORGIVING: Options = { ...ANY_LINE_END, relax_quotes: true, ltrim: true };
const UNQUOTED: Options = { ...ANY_LINE_END, quote: false };

/**
 * Quoted as the standard says; then with stray quotes and blanks forgiven; then with quotes meaning nothing; then
 * by the standard again, but from a later line on, because a line written without care can break all that follows.
 */
export function* readCsv(text: string, mostRecords: number): Generator<CsvReading> {
  const budget = { characters: Math.max(text.length, 64 * 1024) * MOST_ROUNDS, mostRecords };
  const delimiters = DELIMITERS.filter((delimiter) => text.includes(delimiter));
  for (const options of [STRICT, FORGIVING, UNQUOTED]) {
    for (const delimiter of delimiters) {
      const records = attempt(text, { ...options, delimiter }, budget);
      if (records !== undefined) yield { records, delimiter };
    }
  }
  for (const { head, rest } of laterStarts(text)) {
    for (const delimiter of delimiters) {
      const records = attempt(rest, { ...STRICT, delimiter }, budget);
      if (records !== undefined) yield { records: [head.split(delimiter), ...records], delimiter };
    }
  }
}

interface Budget {
  characters: number;
  readonly mostRecords: number;
}

/** `undefined` where the text is not CSV of that kind, or has far more records than it should. */
function attempt(text: string, options: Options, budget: Budget): string[][] | undefined {
  budget.characters -= text.length;
  if (budget.characters < 0) return undefined;
  let count = 0;
  const onRecord = (record: string[]): string[] => {
    if (++count > budget.mostRecords) throw new Error("too many records");
    return record;
  };
  try {
    return tidy(parse(text, { ...options, on_record: onRecord }));
  } catch {
    return undefined;
  }
}

/** Without empty records, and without the empty last cell of each that a delimiter at the end of every line makes. */
function tidy(records: string[][]): string[][] {
  const filled = records.filter((record) => record.some((cell) => cell.trim() !== ""));
  const trailing = filled.length > 0 && filled.every((record) => record.length > 2 && record.at(-1) === "");
  return trailing ? filled.map((record) => record.slice(0, -1)) : filled;
}

function* laterStarts(text: string): Generator<{ head: string; rest: string }> {
  const lineEnd = /\r\n|\n|\r/g;
  for (let line = 0; line < MOST_BROKEN_LINES; line++) {
    const end = lineEnd.exec(text);
    if (end === null) return;
    yield { head: text.slice(0, end.index), rest: text.slice(lineEnd.lastIndex) };
  }
}
