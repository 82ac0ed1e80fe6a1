/**
 * The checksums CSV, parsed and matched to the file list.
 *
 * The CSV has an optional subject line, a row of two labels in some language, then one row per file: `name` and
 * `checksum (ALGORITHM)`. Delimiter, quoting, encoding and line ends are unknown.
 *
 * The subject is untrusted, and may imitate labels and rows. Rows are therefore read from the end of the file back to the
 * first one that cannot be a file's: the row of labels. Nothing before it is read as a file. Each character is read once or
 * twice, so that no text is expensive.
 */
import { Fault } from "../base/faults.ts";
import { composed } from "../base/fold-name.ts";
import { inTurns } from "../base/timers.ts";
import type { Checksum } from "../model/checksum.ts";
import type { TransferFile } from "../model/transfer.ts";

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

const DELIMITERS = [",", ";", "\t"];

const MAX_SUBJECT_CHARACTERS = 1_000;

/** Throws `CHECKSUMS_UNREADABLE` if the bytes have this structure in no charset. */
export async function parseChecksums(
  bytes: Uint8Array,
  contentType: string | undefined,
  files: readonly TransferFile[],
): Promise<ChecksumReport> {
  let best: ChecksumReport | undefined;
  const names = new Set(files.map((file) => file.name));
  for (const text of decodeText(bytes, contentType)) {
    const table = await findTable(text, names, files.length);
    if (table === undefined) continue;
    const report = await matchRows(table, files);
    if (leftovers(report) === 0) return report;
    if (best === undefined || isBetter(report, best)) best = report;
  }
  if (best === undefined) {
    throw new Fault("CHECKSUMS_UNREADABLE", { detail: `${bytes.length} bytes without a row of labels` });
  }
  return best;
}

/** The texts that the bytes may mean, the likeliest first. Lazy, so that a large text is in memory once. */
function* decodeText(bytes: Uint8Array, contentType = ""): Generator<string> {
  const declared = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(contentType)?.[1]?.toLowerCase();
  for (const charset of new Set([charsetByZeros(bytes), declared, "utf-8", "windows-1252"])) {
    try {
      if (charset !== undefined) yield new TextDecoder(charset, { fatal: true }).decode(bytes);
    } catch {
      // The charset is unknown, or the bytes are not valid in it.
    }
  }
}

/** UTF-16 is recognised by its zero bytes: names and checksums are mostly ASCII. */
function charsetByZeros(bytes: Uint8Array): string | undefined {
  const sample = bytes.subarray(0, 4096);
  const zerosAt = (parity: number) => sample.filter((byte, at) => byte === 0 && at % 2 === parity).length;
  const [even, odd] = [zerosAt(0), zerosAt(1)];
  if (Math.max(even, odd) < sample.length / 8) return undefined;
  return even > odd ? "utf-16be" : "utf-16le";
}

interface Table {
  readonly subject: string | undefined;
  readonly rows: readonly ChecksumRow[];
}

/** A file's row has a checksum or an empty cell. While there are fewer rows than files, a listed name is enough. */
async function findTable(
  text: string,
  names: ReadonlySet<string>,
  fileCount: number,
): Promise<Table | undefined> {
  const rows: ChecksumRow[] = [];
  for await (const record of inTurns(recordsFromEnd(text, names))) {
    const { name, cell, delimiter, start } = record;
    const isExpected = rows.length < fileCount && names.has(name);
    const checksum = parseChecksum(cell);
    if (checksum !== undefined || cell === "" || isExpected) {
      rows.push({ name, checksum });
      continue;
    }
    // A row of labels has two cells, and the first one is not empty.
    if (name.trim() === "" || name.includes(delimiter)) return undefined;
    return { subject: readSubject(text.slice(0, start), delimiter), rows: rows.reverse() };
  }
  return undefined;
}

function parseChecksum(cell: string): Checksum | undefined {
  if (cell.length > LONGEST_CELL) return undefined;
  const [, value = "", algorithm = ""] = CHECKSUM_CELL.exec(cell) ?? [];
  if (algorithm.trim() === "") return undefined;
  return { value: copyOf(value.replaceAll(":", "")), algorithm: copyOf(algorithm.trim()) };
}

/** V8 keeps the whole text in memory for a substring of it: copy parts that outlive the text. */
function copyOf(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}

/** Two cells. The last one holds no delimiter and no line break, so everything before it is the name. */
interface CsvRecord {
  readonly name: string;
  readonly cell: string;
  readonly delimiter: string;
  /** The position in the text. */
  readonly start: number;
}

/** The last record first. Ends at a line without a delimiter. */
function* recordsFromEnd(text: string, names: ReadonlySet<string>): Generator<CsvRecord> {
  /** Decided by the last line. */
  let linesEndWithDelimiter: boolean | undefined;
  for (let end = text.length; end > 0; ) {
    const line = text.slice(lineStart(text, end), end);
    if (isBlank(line)) {
      end -= line.length + 1;
      continue;
    }
    linesEndWithDelimiter ??= hasTrailingDelimiter(line);
    const isExtra = linesEndWithDelimiter && isDelimiter(line.slice(-1));
    const record = readRecord(text, isExtra ? end - 1 : end, names);
    if (record === undefined) return;
    yield record;
    end = record.start - 1;
  }
}

function lineStart(text: string, end: number): number {
  let start = end;
  while (start > 0 && !isLineEnd(text[start - 1])) start--;
  return start;
}

function isLineEnd(character: string | undefined): boolean {
  return character === "\n" || character === "\r";
}

function isDelimiter(character: string): boolean {
  return DELIMITERS.includes(character);
}

function isBlank(line: string): boolean {
  return /^[\s,;]*$/.test(line);
}

/** Some services end each line with a delimiter. */
function hasTrailingDelimiter(line: string): boolean {
  if (!isDelimiter(line.slice(-1))) return false;
  const cell = lastCell(line.slice(0, -1));
  return cell !== undefined && (cell.text === "" || parseChecksum(cell.text) !== undefined);
}

/** `at`: the position of the delimiter before the cell. */
function lastCell(line: string): { readonly at: number; readonly text: string } | undefined {
  const at = Math.max(...DELIMITERS.map((delimiter) => line.lastIndexOf(delimiter)));
  if (at < 0) return undefined;
  const cell = line.slice(at + 1).trim();
  return { at, text: cell.replace(/^"(.*)"$/, "$1") };
}

function readRecord(text: string, end: number, names: ReadonlySet<string>): CsvRecord | undefined {
  const start = lineStart(text, end);
  const line = text.slice(start, end);
  const last = lastCell(line);
  if (last === undefined) return undefined;
  const rest = { cell: last.text, delimiter: line.charAt(last.at) };
  const name = line.slice(0, last.at);
  if (!name.endsWith('"')) return { ...rest, name, start };
  const opening = openingQuote(text, start + last.at - 1);
  if (opening !== undefined) {
    const quoted = unquote(text.slice(opening, start + last.at));
    if (names.has(quoted) || !names.has(name)) return { ...rest, name: quoted, start: opening };
  }
  // The quotes are part of the name, or enclose a name whose own quotes were not doubled.
  const isEnclosed = name.startsWith('"') && !names.has(name);
  return { ...rest, name: isEnclosed ? unquote(name) : name, start };
}

/** The quote that opens the cell, at the start of a line. Doubled quotes belong to the cell's text. */
function openingQuote(text: string, closing: number): number | undefined {
  for (let at = closing; at > 0; ) {
    const last = text.lastIndexOf('"', at - 1);
    if (last < 0) return undefined;
    let first = last;
    while (text[first - 1] === '"') first--;
    const quotes = last - first + 1;
    if (quotes % 2 === 1) return first === 0 || isLineEnd(text[first - 1]) ? first : undefined;
    at = first;
  }
  return undefined;
}

function unquote(cell: string): string {
  return cell.slice(1, -1).replaceAll('""', '"');
}

/** The subject line without its label, which ends at a delimiter or a colon. */
function readSubject(text: string, delimiter: string): string | undefined {
  const label = new RegExp(`^"?[^:"${delimiter}]*"?(?::?${delimiter}|:)`).exec(text);
  const value = text.slice(label?.[0].length ?? 0).trim();
  const plain = /^".*"$/s.test(value) ? unquote(value) : value;
  // The cut may split a character.
  const subject = plain.slice(0, MAX_SUBJECT_CHARACTERS).toWellFormed().trim();
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
