/** Reads a file of the journal from its end. The memory needed does not depend on the length of the file. */

import * as v from "valibot";
import { Fault, systemCode, unreadable } from "../base/faults.ts";
import { withFile } from "../base/files.ts";
import { parseJson } from "../base/json.ts";
import { type ActEntry, ActEntryShape, type HistoryEntry, HistoryEntryShape } from "../model/views.ts";
import { MAX_LINE_BYTES } from "./journal.ts";

const NEWLINE = 0x0a;
const BLOCK_BYTES = 64 * 1024;

/** A clock may have been set back by this much between two lines. */
const MAX_DISORDER_MS = 24 * 60 * 60_000;
/** The beginning of every line. Texts inside a line cannot contain it: JSON escapes their quotes. */
const LINE_START = '{"at":';

const TIME = /^\{"at":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)",(?:"(act|notice)":)?/;

/** The kinds of lines in the history. Lines of notices are skipped. */
const KINDS = { change: HistoryEntryShape, act: ActEntryShape } as const;

export type Kind = keyof typeof KINDS;
export type EntryOf<K extends Kind> = Readonly<v.InferOutput<(typeof KINDS)[K]>>;

interface WantedLines<K extends Kind> {
  readonly kind: K;
  /** Nothing older is wanted. */
  readonly sinceMs?: number | undefined;
  /** A text that each wanted line contains as a JSON string. */
  readonly mark?: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A file of the journal that is read block by block, for lines of one kind. */
export class JournalFile<K extends Kind> {
  readonly path: string;
  damaged = 0;
  /** No line is left that the query could cover. */
  isOver = false;
  /** The time of the oldest line that was read. At first "~", which sorts after every time. */
  readDownTo = "~";
  readonly #blocks: AsyncIterator<(string | undefined)[], void, undefined>;
  readonly #wanted: WantedLines<K>;
  readonly #mark: string;

  constructor(path: string, wanted: WantedLines<K>) {
    this.path = path;
    this.#blocks = readLinesBackward(path, { maxBytes: MAX_LINE_BYTES, signal: wanted.signal });
    this.#wanted = wanted;
    this.#mark = wanted.mark === undefined ? "" : JSON.stringify(wanted.mark);
  }

  /** The next older entries, the last written first. Throws `DISK_UNREADABLE` and `STOPPED`. */
  async readBlock(): Promise<EntryOf<K>[]> {
    const entries: EntryOf<K>[] = [];
    for (const line of await this.#nextLines()) {
      if (this.#trySkip(line)) continue;
      const { entry, isDamaged } = parseLine(line);
      if (isDamaged) this.damaged++;
      if (entry === undefined) continue;
      this.readDownTo = entry.at;
      if (("act" in entry ? "act" : "change") === this.#wanted.kind) entries.push(entry as EntryOf<K>);
    }
    const { sinceMs = Number.NEGATIVE_INFINITY } = this.#wanted;
    if (Date.parse(this.readDownTo) < sinceMs - MAX_DISORDER_MS) this.isOver = true;
    return entries;
  }

  /** True for an unwanted line, recognised without parsing it: that is ten times faster. */
  #trySkip(line = ""): boolean {
    const [, at, kind = "change"] = TIME.exec(line) ?? [];
    if (at === undefined || !line.endsWith("}") || line.lastIndexOf(LINE_START) > 0) return false;
    if (kind === this.#wanted.kind && line.includes(this.#mark)) return false;
    this.readDownTo = at;
    return true;
  }

  async #nextLines(): Promise<(string | undefined)[]> {
    try {
      const { done, value } = await this.#blocks.next();
      this.isOver ||= done === true;
      return value ?? [];
    } catch (error) {
      if (this.#wanted.signal?.aborted) throw new Fault("STOPPED", { cause: error });
      const code = systemCode(error);
      if (code === "") throw error;
      if (code !== "ENOENT") throw unreadable(this.path, error);
      // Retention removed the month.
      this.isOver = true;
      return [];
    }
  }
}

interface ParsedLine {
  /** `undefined` if the line holds no complete entry. */
  readonly entry: HistoryEntry | ActEntry | undefined;
  readonly isDamaged: boolean;
}

function parseLine(line = ""): ParsedLine {
  const { value, isDamaged } = parseText(line);
  if (value !== undefined && "notice" in value) return { entry: undefined, isDamaged };
  const result = v.safeParse(KINDS[value !== undefined && "act" in value ? "act" : "change"], value);
  return result.success ? { entry: result.output, isDamaged } : { entry: undefined, isDamaged: true };
}

/** A power cut can leave zeros, or the beginning of a line. The next entry follows them directly, and is complete. */
export function parseText(line: string): { readonly value: object | undefined; readonly isDamaged: boolean } {
  const text = line.replace(/^\0+/, "");
  const value = parseObject(text);
  if (value !== undefined) return { value, isDamaged: false };
  const start = text.lastIndexOf(LINE_START);
  return { value: start > 0 ? parseObject(text.slice(start)) : undefined, isDamaged: true };
}

function parseObject(text: string): object | undefined {
  const parsed = parseJson(text);
  return typeof parsed === "object" && parsed !== null ? parsed : undefined;
}

interface BackwardOptions {
  /** A longer line is reported as `undefined`, and not kept in memory. */
  readonly maxBytes: number;
  readonly blockBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The lines of a file, the last one first, grouped by block. A last line without a newline counts. Lines appended
 * meanwhile are not read. The file is not open between two blocks. Throws the system's error.
 */
export async function* readLinesBackward(
  path: string,
  { maxBytes, blockBytes = BLOCK_BYTES, signal }: BackwardOptions,
): AsyncGenerator<(string | undefined)[], void, undefined> {
  let end = (await withFile(path, "r", (file) => file.stat())).size;
  let isLast = true;
  /** The end of a line whose beginning is not read yet: bytes, because a block may begin within a character. */
  let tail = Buffer.alloc(0);
  let isTooLong = false;
  while (end > 0) {
    signal?.throwIfAborted();
    const start = Math.max(0, end - blockBytes);
    const block = await readBlock(path, start, end);
    // The file became shorter: no writer of ours does that.
    if (block.length < end - start) return;
    end = start;
    let rest = Buffer.concat([block, tail]);
    const lines: (string | undefined)[] = [];
    const take = (line: Buffer) => {
      const text = isTooLong || line.length > maxBytes ? undefined : line.toString();
      if (!isLast || text !== "") lines.push(text);
      isLast = false;
      isTooLong = false;
    };
    for (let at = rest.lastIndexOf(NEWLINE); at >= 0; at = rest.lastIndexOf(NEWLINE)) {
      take(rest.subarray(at + 1));
      rest = rest.subarray(0, at);
    }
    if (end === 0) take(rest);
    isTooLong ||= rest.length > maxBytes;
    tail = isTooLong ? Buffer.alloc(0) : rest;
    if (lines.length > 0) yield lines;
  }
}

async function readBlock(path: string, start: number, end: number): Promise<Buffer> {
  const block = Buffer.allocUnsafe(end - start);
  return withFile(path, "r", async (file) => {
    let length = 0;
    while (length < block.length) {
      const count = await file.read(block.subarray(length), start + length);
      if (count === 0) break;
      length += count;
    }
    return block.subarray(0, length);
  });
}
