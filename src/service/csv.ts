/** Every plausible reading of a CSV text whose delimiter and quoting are not known, the strictest first. */
import { type Options, parse } from "csv-parse/sync";

export interface CsvReading {
  readonly records: readonly (readonly string[])[];
  readonly delimiter: string;
}

const DELIMITERS = [",", ";", "\t"];

/** How many characters may be parsed in all: hostile text must not keep us busy. */
const MOST_CHARACTERS = 64 * 1024 * 1024;

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
export function* readCsv(text: string): Generator<CsvReading> {
  const budget = { characters: MOST_CHARACTERS };
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

/** `undefined` where the text is not CSV of that kind. */
function attempt(text: string, options: Options, budget: { characters: number }): string[][] | undefined {
  budget.characters -= text.length;
  if (budget.characters < 0) return undefined;
  try {
    return parse(text, options);
  } catch {
    return undefined;
  }
}

function* laterStarts(text: string): Generator<{ head: string; rest: string }> {
  const lineEnd = /\r\n|\n|\r/g;
  for (let line = 0; line < MOST_BROKEN_LINES; line++) {
    const end = lineEnd.exec(text);
    if (end === null) return;
    yield { head: text.slice(0, end.index), rest: text.slice(lineEnd.lastIndex) };
  }
}
