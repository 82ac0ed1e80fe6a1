/**
 * The checksums CSV, read by its structure and matched to the file list.
 *
 * Known of it: a subject line (or none), a row of two labels in some language, then one row per file, `name` and
 * `checksum (ALGORITHM)`. Not known: delimiter, quoting, encoding, line ends. So every plausible reading is tried
 * and the file list decides. The subject is a stranger's text and may look like anything, also like labels and
 * rows: rows are therefore counted from the end of the file back to the last row that cannot be a file's, which is
 * the row of labels; whatever stands before it is never read as a file.
 */
import { Fault } from "../base/faults.ts";
import type { Checksum } from "../model/checksum.ts";
import type { TransferFile } from "../model/transfer.ts";
import { type CsvReading, readCsv } from "./csv.ts";
import { decodeText } from "./text.ts";

export interface ChecksumRow {
  readonly name: string;
  /** Missing where the cell is empty: checksums may be switched off. */
  readonly checksum: Checksum | undefined;
}

export interface ChecksumReport {
  readonly subject: string | undefined;
  /** What the CSV says of each file that it names, by file-id. */
  readonly byFileId: ReadonlyMap<string, ChecksumRow>;
  /** Rows that belong to no file of the list, or to one that another row had named before. */
  readonly unlisted: readonly ChecksumRow[];
  /** Files of the list that no row names. */
  readonly missing: readonly TransferFile[];
}

/** Longer than any checksum with its algorithm. */
const LONGEST_CELL = 512;

/** Hexadecimal digits, perhaps in pairs with colons, or base64; then the algorithm in parentheses. */
const CHECKSUM_CELL =
  /^((?:[0-9a-f]{2}:){7,}[0-9a-f]{2}|[0-9a-f]{8,}|[a-z0-9+/]+=+|[a-z0-9+/]{64,})\s*\(([^()]+)\)$/i;

/** A subject of more lines than that is no honest one. */
const MOST_SUBJECT_LINES = 1_000;
const MOST_SUBJECT_CHARACTERS = 1_000;

/** How often a text may be read in all; a short one may be read more often. */
const READINGS = 4;
const LEAST_CHARACTERS = 1024 * 1024;
/** What matching a table to the list costs per file, compared with reading a character. */
const CHARACTERS_PER_FILE = 20;

/** Throws `CHECKSUMS_UNREADABLE` where no reading has the known structure. */
export function parseChecksums(
  bytes: Uint8Array,
  contentType: string | undefined,
  files: readonly TransferFile[],
): ChecksumReport {
  let best: ChecksumReport | undefined;
  const names = new Set(files.map((file) => file.name));
  const budget = {
    characters: Math.max(READINGS * bytes.length, LEAST_CHARACTERS),
    mostRecords: files.length + MOST_SUBJECT_LINES,
  };
  for (const text of decodeText(bytes, contentType)) {
    for (const reading of readCsv(text, budget)) {
      const table = findTable(reading, names, files.length);
      if (table === undefined) continue;
      const report = matchRows(table, files);
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

/** From the end: what looks like a file's row is one; and so is what names a file, while rows are missing. */
function findTable(
  { records, delimiter }: CsvReading,
  names: ReadonlySet<string>,
  fileCount: number,
): Table | undefined {
  const rows: ChecksumRow[] = [];
  for (let at = records.length - 1; at >= 0; at--) {
    const record = records[at] ?? [];
    const row =
      parseRow(record, delimiter) ??
      (rows.length < fileCount ? parseOddRow(record, delimiter, names) : undefined);
    if (row === undefined) {
      if (!isLabels(record)) return undefined;
      return { subject: readSubject(records.slice(0, at), delimiter), rows: rows.reverse() };
    }
    rows.push(row);
  }
  return undefined;
}

/** The checksum holds no delimiter, so whatever stands before the last one is the name, quoted or not. */
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

/** V8 keeps a whole text in memory for a part of it: what outlives the text is copied. */
function copyOf(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}

/** A row of a listed file whose checksum is written in a way that nobody knows: there is none to verify by. */
function parseOddRow(
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

/** What follows the label, which a delimiter ends; some write `Label: value` in one cell instead. */
function readSubject(records: CsvReading["records"], delimiter: string): string | undefined {
  const [label = ""] = records[0] ?? [];
  const text = records.map((record) => record.join(delimiter)).join("\n");
  const value = /^[^:]*:\s*\S/.test(label)
    ? text.slice(label.indexOf(":") + 1)
    : text.slice(label.length + 1);
  const subject = value.trim().slice(0, MOST_SUBJECT_CHARACTERS).trim();
  return subject === "" ? undefined : copyOf(subject);
}

function matchRows(table: Table, files: readonly TransferFile[]): ChecksumReport {
  const byFileId = new Map<string, ChecksumRow>();
  const inSameForm = claimRows(table.rows, files, byFileId, (name) => name);
  const unlisted =
    inSameForm.length === 0 ? [] : claimRows(inSameForm, files, byFileId, (name) => name.normalize("NFC"));
  return {
    subject: table.subject,
    byFileId,
    unlisted,
    missing: files.filter((file) => !byFileId.has(file.id)),
  };
}

/** Gives rows to files of the same name that have none yet, and returns the rows that found no file. */
function claimRows(
  rows: readonly ChecksumRow[],
  files: readonly TransferFile[],
  byFileId: Map<string, ChecksumRow>,
  form: (name: string) => string,
): ChecksumRow[] {
  const waiting = new Map<string, TransferFile[]>();
  // Backwards, so that the first of several files with one name is the last of its list, and cheap to take.
  for (const file of files.toReversed()) {
    if (byFileId.has(file.id)) continue;
    const sameName = waiting.get(form(file.name));
    if (sameName === undefined) waiting.set(form(file.name), [file]);
    else sameName.push(file);
  }
  return rows.filter((row) => {
    const file = waiting.get(form(row.name))?.pop();
    if (file !== undefined) byFileId.set(file.id, row);
    return file === undefined;
  });
}

function leftovers(report: ChecksumReport): number {
  return report.unlisted.length + report.missing.length;
}

function isBetter(report: ChecksumReport, than: ChecksumReport): boolean {
  const gained = report.byFileId.size - than.byFileId.size;
  return gained > 0 || (gained === 0 && leftovers(report) < leftovers(than));
}
