/** Output: data as a table, tab-separated lines or JSON; messages on standard error; a progress line. */
import { once } from "node:events";
import { styleText } from "node:util";
import { describeFault, Fault } from "../base/faults.ts";
import {
  escapeJson,
  formatBytes,
  formatMoment,
  formatSeconds,
  printable,
  zoneName,
} from "../base/phrases.ts";
import type { Context } from "./command.ts";

export { printable };

export interface Column<Row> {
  readonly title: string;
  value(row: Row): string;
}

/** A column for each key, which is its title: `TRACKING ID` for `trackingId`. */
export function columnsOf<Row>(...keys: readonly (keyof Row & string)[]): Column<Row>[] {
  return keys.map((key) => {
    const title = key.replace(/[A-Z]/g, " $&").toUpperCase();
    return { title, value: (row) => formatValue(row[key]) };
  });
}

function formatValue(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(formatValue).join(", ");
  if (typeof value !== "object" || value === null) return String(value ?? "");
  const facts = Object.entries(value).map(([name, fact]) => `${name} ${formatValue(fact)}`);
  return facts.join(", ");
}

/** Prints a table of the rows, or with `--json` the document. */
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

/** A line of cells, separated by tabs. A spreadsheet would run a cell that begins as a formula does. */
export function formatCells(cells: readonly string[]): string {
  return `${cells.map((cell) => printable(cell).replace(/^[=+@＝＋＠－-]/, "'$&")).join("\t")}\n`;
}

/** A terminal gets titles and aligned columns. A pipe gets one line per row, cells separated by tabs. */
export function printTable<Row>(
  { stdout }: Context,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): void {
  if (!stdout.isTTY) {
    for (const row of rows) stdout.write(formatCells(columns.map((column) => column.value(row))));
    return;
  }
  const cells = rows.map((row) => columns.map((column) => printable(column.value(row))));
  const titles = columns.map((column) => column.title);
  const widths = titles.map((title, at) =>
    cells.reduce((widest, line) => Math.max(widest, line[at]?.length ?? 0), title.length),
  );
  const align = (line: readonly string[]) =>
    line
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  stdout.write(`${styleText("bold", align(titles), { stream: stdout })}\n`);
  for (const line of cells) stdout.write(`${align(line)}\n`);
}

/** Prints the outcome of a check. A terminal gets a mark, a sentence and the advice; a pipe gets one line of cells. */
export function printFinding(
  { stdout }: Context,
  colour: "green" | "yellow" | "red" | "gray",
  cells: readonly [status: string, ...rest: string[]],
  sentence: string,
  advice?: string,
): void {
  if (!stdout.isTTY) {
    stdout.write(formatCells([...cells, advice ?? ""]));
    return;
  }
  const mark = styleText(colour, cells[0].padEnd(7), { stream: stdout });
  stdout.write(`  ${mark}  ${printable(sentence)}\n`);
  if (advice !== undefined) stdout.write(`           → ${printable(advice)}\n`);
}

export function printJson({ stdout }: Context, value: unknown): void {
  stdout.write(`${formatJson(value)}\n`);
}

/** Waits for a slow reader, so that output does not pile up in memory. Throws `STOPPED`. */
export async function writeOut({ stdout, stop }: Context, chunk: string | Uint8Array): Promise<void> {
  if (stdout.write(chunk)) return;
  await once(stdout, "drain", { signal: stop }).catch((error: unknown) => {
    throw stop.aborted ? new Fault("STOPPED", { cause: error }) : error;
  });
}

/** Without any character that could move a cursor, hide or reorder text. */
export function formatJson(value: unknown): string {
  return escapeJson(JSON.stringify(value, null, 2));
}

/** A message on standard error; never data. */
export function say({ stderr }: Context, message: string): void {
  stderr.write(`${printable(message)}\n`);
}

/** `printable` for a text of several lines. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** What a command that fails prints on standard error. */
export function formatFailure(fault: Fault, asJson: boolean): string {
  const { code, verdict, message, advice, retryAfterMs, cause } = fault;
  const sentence = asJson
    ? escapeJson(JSON.stringify({ error: { code, verdict, message, advice, retryAfterMs } }))
    : `inlet: ${printableLines(describeFault(fault))}`;
  const stack =
    code === "UNEXPECTED" && cause instanceof Error ? `${printableLines(cause.stack ?? "")}\n` : "";
  return `${sentence}\n${stack}`;
}

/** A terminal shows times in the configured zone, a pipe in UTC. */
export function formatTime({ stdout }: Context, iso: string, zone: string | undefined): string {
  return stdout.isTTY && iso !== "" ? formatMoment(iso, zone) : iso;
}

/** A column of times. On a terminal, its title names the zone. */
export function timeColumn<Row>(
  context: Context,
  title: string,
  zone: string | undefined,
  timeOf: (row: Row) => string,
): Column<Row> {
  return {
    title: context.stdout.isTTY ? `${title} (${zoneName(zone)})` : title,
    value: (row) => formatTime(context, timeOf(row), zone),
  };
}

const REDRAW_MS = 100;
const BAR_WIDTH = 24;

/** Replaces the line at the cursor of a terminal. */
export function redrawLine(stream: NodeJS.WriteStream, line: string): void {
  stream.write(`\r\u001b[K${line.slice(0, (stream.columns || 80) - 1)}`);
}

/** `end` erases the line. */
export function startProgress({ stderr }: Context, label: string, totalBytes: number | undefined) {
  const startedMs = performance.now();
  let bytes = 0;
  let drawnMs = Number.NEGATIVE_INFINITY;
  return {
    advance(more: number) {
      bytes += more;
      const nowMs = performance.now();
      if (!stderr.isTTY || nowMs - drawnMs < REDRAW_MS) return;
      drawnMs = nowMs;
      redrawLine(stderr, formatProgress(label, bytes, totalBytes, (nowMs - startedMs) / 1000));
    },
    end() {
      if (stderr.isTTY) redrawLine(stderr, "");
    },
  };
}

/** `share` from 0 to 1. */
export function formatBar(share: number): string {
  const done = Math.min(share, 1);
  const filled = Math.floor(done * BAR_WIDTH);
  const percent = `${Math.floor(done * 100)}%`.padStart(4);
  return `${"█".repeat(filled)}${"░".repeat(BAR_WIDTH - filled)} ${percent}`;
}

export function formatProgress(
  label: string,
  bytes: number,
  totalBytes: number | undefined,
  seconds: number,
): string {
  const rate = seconds > 0 ? bytes / seconds : 0;
  const speed = `${formatBytes(Math.round(rate))}/s`;
  if (totalBytes === undefined || totalBytes === 0)
    return `${printable(label)}  ${formatBytes(bytes)}  ${speed}`;
  const bar = formatBar(bytes / totalBytes);
  const left = rate > 0 ? `${formatSeconds((totalBytes - bytes) / rate)} left` : "";
  return `${bar}  ${formatBytes(bytes)} of ${formatBytes(totalBytes)}  ${speed}  ${left}  ${printable(label)}`;
}
