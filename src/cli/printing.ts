/** Data on standard output: a table for people, tab-separated lines for pipes, JSON where asked for. */
import { stripVTControlCharacters, styleText } from "node:util";
import { escapeJson } from "../base/escaping.ts";
import type { Context } from "./context.ts";

export interface Column<Row> {
  readonly title: string;
  readonly right?: boolean;
  value(row: Row): string;
}

/** A table of the rows, or, where JSON is asked for, the document that says the same (the rows, if not given). */
export function printRows<Row>(
  context: Context,
  { json }: { readonly json?: boolean },
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  document: unknown = rows,
): void {
  if (json) printJson(context, document);
  else printTable(context, columns, rows);
}

/** On a terminal with titles and aligned; on a pipe one line per row, cells separated by a tab, without titles. */
function printTable<Row>({ stdout }: Context, columns: readonly Column<Row>[], rows: readonly Row[]): void {
  const cells = rows.map((row) => columns.map((column) => printable(column.value(row))));
  if (!stdout.isTTY) {
    for (const line of cells) stdout.write(`${line.join("\t")}\n`);
    return;
  }
  const titles = columns.map((column) => column.title);
  const widths = titles.map((title, at) =>
    cells.reduce((widest, line) => Math.max(widest, widthOf(line[at] ?? "")), widthOf(title)),
  );
  const align = (line: readonly string[]) =>
    line
      .map((cell, at) => {
        const gap = " ".repeat((widths[at] ?? 0) - widthOf(cell));
        return columns[at]?.right ? gap + cell : cell + gap;
      })
      .join("  ")
      .trimEnd();
  stdout.write(`${styleText("bold", align(titles), { stream: stdout })}\n`);
  for (const line of cells) stdout.write(`${align(line)}\n`);
}

export function printJson({ stdout }: Context, value: unknown): void {
  stdout.write(`${formatJson(value)}\n`);
}

/** Without any character that could move a cursor, hide or reorder text. */
export function formatJson(value: unknown): string {
  return escapeJson(JSON.stringify(value, null, 2));
}

/** Sentences for the person at the terminal; never data. */
export function say({ stderr }: Context, sentence: string): void {
  stderr.write(`${printable(sentence)}\n`);
}

/** Other people's text with every character that could move a cursor, hide or reorder text spelled out. */
export function printable(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Combining marks take no room, wide characters take two. */
export function widthOf(text: string): number {
  let columns = 0;
  for (const character of stripVTControlCharacters(text)) {
    if (/\p{M}/u.test(character)) continue;
    columns +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u.test(
        character,
      )
        ? 2
        : 1;
  }
  return columns;
}
