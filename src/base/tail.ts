/** Reads files of lines forward, from saved positions. Their writers only append. */
import { join } from "node:path";
import { systemCode } from "./faults.ts";
import { readdir, stat, withFile } from "./files.ts";

/** How many bytes of each file were read, by the file's name. */
export type Positions = Map<string, number>;

export interface TailedFolder<Value extends object> {
  readonly folder: string;
  /** Matches the names of the files. */
  readonly pattern: RegExp;
  /** `undefined` for a damaged line. */
  parse(line: string): Value | undefined;
  /** Lines of several files are passed on in the order of these texts. */
  orderOf(value: Value): string;
}

interface Line<Value> {
  readonly value: Value | undefined;
  /** The position after it. */
  readonly end: number;
}

const NEWLINE = 0x0a;
/** A longer line is damaged. */
const BLOCK_BYTES = 256 * 1024;

/** The positions after all lines. */
export async function findEnd<Value extends object>(tailed: TailedFolder<Value>): Promise<Positions> {
  const positions: Positions = new Map();
  for (const name of await namesIn(tailed)) {
    positions.set(name, (await stat(join(tailed.folder, name))).size);
  }
  return positions;
}

/**
 * Passes on each line after the positions, and moves the positions past it. A line counts once it is complete and synced.
 * False if a file could not be read: its lines are left for the next call. Throws if the folder cannot be read.
 */
export async function readTail<Value extends object>(
  tailed: TailedFolder<Value>,
  positions: Positions,
  onLine: (value: Value) => void,
): Promise<boolean> {
  const names = await namesIn(tailed);
  for (const name of [...positions.keys()]) if (!names.includes(name)) positions.delete(name);
  /** The lines of each file that were read, and are not passed on yet. No list is empty. */
  const unread = new Map<string, Line<Value>[]>();
  let isComplete = true;
  const read = async (name: string) => {
    const lines = await readBlock(tailed, name, positions.get(name) ?? 0).catch(() => {
      isComplete = false;
      return [];
    });
    if (lines.length > 0) unread.set(name, lines);
    else unread.delete(name);
  };
  const orderOf = ([next]: Line<Value>[]) =>
    // A damaged line comes first: its file continues behind it.
    next?.value === undefined ? "" : tailed.orderOf(next.value);
  for (const name of names) await read(name);
  // Each turn passes on the oldest of the files' next lines.
  for (;;) {
    const [oldest] = [...unread].toSorted(([, a], [, b]) => (orderOf(a) < orderOf(b) ? -1 : 1));
    const line = oldest?.[1].shift();
    if (oldest === undefined || line === undefined) return isComplete;
    const [name, lines] = oldest;
    positions.set(name, line.end);
    if (line.value !== undefined) onLine(line.value);
    if (lines.length === 0) await read(name);
  }
}

/** A missing folder has no files. */
async function namesIn({ folder, pattern }: Pick<TailedFolder<object>, "folder" | "pattern">) {
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  });
  return names.filter((name) => pattern.test(name)).toSorted();
}

/** The next lines of a file; none at its end. */
async function readBlock<Value extends object>(
  { folder, parse }: TailedFolder<Value>,
  name: string,
  start: number,
): Promise<Line<Value>[]> {
  const path = join(folder, name);
  const { size } = await stat(path);
  // A shorter file is another file.
  const from = size < start ? 0 : start;
  if (size === from) return [];
  return withFile(path, "r", async (file) => {
    // Without the sync, a power cut could take lines that were passed on.
    await file.sync();
    const buffer = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, size - from));
    const block = buffer.subarray(0, await file.read(buffer, from));
    const lines: Line<Value>[] = [];
    let begin = 0;
    for (let end = block.indexOf(NEWLINE) + 1; end > 0; end = block.indexOf(NEWLINE, end) + 1) {
      lines.push({ value: parse(block.toString("utf8", begin, end - 1)), end: from + end });
      begin = end;
    }
    const isTooLong = lines.length === 0 && block.length === BLOCK_BYTES;
    return isTooLong ? [{ value: undefined, end: from + block.length }] : lines;
  });
}
