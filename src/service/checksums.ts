/**
 * The checksums CSV, parsed and matched to the file list.
 *
 * The CSV has an optional subject line, a row of two labels in some language, then one row per file: `name` and
 * `checksum (ALGORITHM)`. Delimiter, quoting, encoding and line ends are unknown, so every plausible reading is tried, and
 * the file list decides.
 *
 * The subject is untrusted, and may imitate labels and rows. Rows are therefore read from the end of the file back to the
 * first one that cannot be a file's: the row of labels. Nothing before it is read as a file.
 */
import { Fault } from "../base/faults.ts";
import { composed } from "../base/fold-name.ts";
import { inTurns } from "../base/timers.ts";
import type { Checksum } from "../model/checksum.ts";
import type { TransferFile } from "../model/transfer.ts";
import { type CsvReading, decodeText, readCsv } from "./csv.ts";

export interface ChecksumRow {
  readonly name: string;
  /** Missing if the cell is empty: checksums may be switched off. */
  readonly checksum: Checksum | undefined;
}

export interface ChecksumReport {
  readonly subject: string | undefined;
  readonly byFileId: ReadonlyMap<string, ChecksumRow>;
  /** Rows without a file in the list, and further rows of a file that already has one. */
  readonly unlisted: readonly ChecksumRow[];
  /** Files without a row. */
  readonly missing: readonly TransferFile[];
}

/** Longer than any checksum with its algorithm. */
const LONGEST_CELL = 512;

/** Hexadecimal digits, perhaps in pairs with colons, or base64; then the algorithm in parentheses. */
const CHECKSUM_CELL =
  /^((?:[0-9a-f]{2}:){7,}[0-9a-f]{2}|[0-9a-f]{8,}|[a-z0-9+/]+=+|[a-z0-9+/]{64,})\s*\(([^()]+)\)$/i;

/** An honest subject has fewer lines. */
const MAX_SUBJECT_LINES = 1_000;
const MAX_SUBJECT_CHARACTERS = 1_000;

/** The budget for parsing is this many times the length of the text, and at least `MIN_CHARACTERS`. */
const READINGS = 4;
const MIN_CHARACTERS = 1024 * 1024;
/** The cost of matching one file, in characters of the budget. */
const CHARACTERS_PER_FILE = 20;

/** Throws `CHECKSUMS_UNREADABLE` if no reading has the expected structure. */
export async function parseChecksums(
  bytes: Uint8Array,
  contentType: string | undefined,
  files: readonly TransferFile[],
): Promise<ChecksumReport> {
  let best: ChecksumReport | undefined;
  const names = new Set(files.map((file) => file.name));
  const budget = {
    characters: Math.max(READINGS * bytes.length, MIN_CHARACTERS),
    maxRecords: files.length + MAX_SUBJECT_LINES,
  };
  for (const text of decodeText(bytes, contentType)) {
    for await (const reading of readCsv(text, budget)) {
      const table = await findTable(reading, names, files.length);
      if (table === undefined) continue;
      const report = await matchRows(table, files);
      budget.characters -= files.length * CHARACTERS_PER_FILE;
      if (leftovers(report) === 0) return report;
      if (best === undefined || isBetter(report, best)) best = report;
    }
  }
  if (best === undefined) {
    throw new Fault("CHECKSUMS_UNREADABLE", { detail: `${bytes.length} bytes without a row of labels` });
  }
  return best;
}

interface Table {
  readonly subject: string | undefined;
  readonly rows: readonly ChecksumRow[];
}

/** Reads from the end. A row has a checksum or an empty cell; until every file has a row, a listed name suffices. */
async function findTable(
  { records, delimiter }: CsvReading,
  names: ReadonlySet<string>,
  fileCount: number,
): Promise<Table | undefined> {
  const rows: ChecksumRow[] = [];
  let at = records.length;
  for await (const record of inTurns(records.toReversed())) {
    at--;
    const row =
      parseRow(record, delimiter) ??
      (rows.length < fileCount ? parseRowByName(record, delimiter, names) : undefined);
    if (row === undefined) {
      if (!isLabels(record)) return undefined;
      return { subject: readSubject(records.slice(0, at), delimiter), rows: rows.reverse() };
    }
    rows.push(row);
  }
  return undefined;
}

/** A checksum holds no delimiter, so everything before the last one is the name, quoted or not. */
function parseRow(record: readonly string[], delimiter: string): ChecksumRow | undefined {
  if (record.length < 2) return undefined;
  const name = record.slice(0, -1).join(delimiter);
  const cell = (record.at(-1) ?? "").trim();
  if (cell === "") return { name, checksum: undefined };
  if (cell.length > LONGEST_CELL) return undefined;
  const [, value = "", algorithm = ""] = CHECKSUM_CELL.exec(cell) ?? [];
  if (algorithm.trim() === "") return undefined;
  return {
    name,
    checksum: { value: copyOf(value.replaceAll(":", "")), algorithm: copyOf(algorithm.trim()) },
  };
}

/** V8 keeps the whole text in memory for a substring of it: copy parts that outlive the text. */
function copyOf(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}

/** A row of a listed file with a checksum of unknown form, which cannot be verified. */
function parseRowByName(
  record: readonly string[],
  delimiter: string,
  names: ReadonlySet<string>,
): ChecksumRow | undefined {
  const name = record.slice(0, -1).join(delimiter);
  return record.length >= 2 && names.has(name) ? { name, checksum: undefined } : undefined;
}

function isLabels(record: readonly string[]): boolean {
  return record.length === 2 && record.every((label) => label.trim() !== "");
}

/** The text after the label. The label ends at a delimiter, or at the colon of `Label: value` in one cell. */
function readSubject(records: CsvReading["records"], delimiter: string): string | undefined {
  const [label = ""] = records[0] ?? [];
  const text = records.map((record) => record.join(delimiter)).join("\n");
  const value = /^[^:]*:\s*\S/.test(label)
    ? text.slice(label.indexOf(":") + 1)
    : text.slice(label.length + 1);
  // The cut may split a character.
  const subject = value.trim().slice(0, MAX_SUBJECT_CHARACTERS).toWellFormed().trim();
  return subject === "" ? undefined : copyOf(subject);
}

async function matchRows(table: Table, files: readonly TransferFile[]): Promise<ChecksumReport> {
  const byFileId = new Map<string, ChecksumRow>();
  const unmatched = await assignRows(table.rows, files, byFileId, (name) => name);
  const unlisted = unmatched.length === 0 ? [] : await assignRows(unmatched, files, byFileId, composed);
  return {
    subject: table.subject,
    byFileId,
    unlisted,
    missing: files.filter((file) => !byFileId.has(file.id)),
  };
}

/** Assigns rows to files of the same name that have none yet, and returns the remaining rows. */
async function assignRows(
  rows: readonly ChecksumRow[],
  files: readonly TransferFile[],
  byFileId: Map<string, ChecksumRow>,
  form: (name: string) => string,
): Promise<ChecksumRow[]> {
  const waiting = new Map<string, TransferFile[]>();
  // Reversed, so that `pop` takes the first of several files with the same name.
  for await (const file of inTurns(files.toReversed())) {
    if (byFileId.has(file.id)) continue;
    const sameName = waiting.get(form(file.name));
    if (sameName === undefined) waiting.set(form(file.name), [file]);
    else sameName.push(file);
  }
  const left: ChecksumRow[] = [];
  for await (const row of inTurns(rows)) {
    const file = waiting.get(form(row.name))?.pop();
    if (file === undefined) left.push(row);
    else byFileId.set(file.id, row);
  }
  return left;
}

function leftovers(report: ChecksumReport): number {
  return report.unlisted.length + report.missing.length;
}

function isBetter(report: ChecksumReport, than: ChecksumReport): boolean {
  const gained = report.byFileId.size - than.byFileId.size;
  return gained > 0 || (gained === 0 && leftovers(report) < leftovers(than));
}
