/** Unpacks a ZIP into a folder: exactly the announced files, each with its size and checksums, under our own names. */

import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { crc32, createInflateRaw, inflateRawSync, type ZlibOptions } from "node:zlib";
import { fromRandomAccessReaderPromise, RandomAccessReader, type ZipFile } from "yauzl";
import { UNPACK_TIME_MS } from "../base/bounds.ts";
import { forEachLimit } from "../base/concurrency.ts";
import { LONGEST_TIMER_MS } from "../base/deadline.ts";
import { finishFile } from "../base/durable.ts";
import { Fault, faultOfDisk, messageOf } from "../base/faults.ts";
import { type OpenFile, readdir, rm, withFile } from "../base/files.ts";
import { isPlainName } from "../base/inbox-door.ts";
import type { Sum } from "../base/sums.ts";
import { nextTurn, timeLimit } from "../base/timers.ts";
import { startVerification } from "../model/checksum.ts";
import {
  DEFLATED,
  type ListedEntry,
  listDirectory,
  type MatchedEntry,
  type MatchOptions,
  matchDirectory,
  quoted,
  type WantedEntry,
  wrong,
  wrongSize,
} from "./unpack-directory.ts";

declare module "node:zlib" {
  /** Node's types lack the result of `info`. */
  function inflateRawSync(
    deflated: Buffer,
    options: ZlibOptions & { readonly info: true },
  ): { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } };
}

const INFLATED_CHUNK_BYTES = 64 * 1024;
/** Several files at once take a disk little longer than one. */
const ENTRIES_AT_ONCE = 8;
/** Entries up to this size, packed and unpacked, are inflated in one call: a stream would take longer. */
const SMALL_ENTRY_BYTES = 256 * 1024;

/**
 * Returns the SHA-256 of each file in hexadecimal digits. All or nothing: after a failure, the files that this call made are
 * removed. Files of an earlier attempt are replaced. `fileMode`: of complete files.
 * When it returns, every file is synced, and the folder is not. Throws `ARCHIVE_WRONG`, `SIZE_MISMATCH`,
 * `CHECKSUM_MISMATCH`, `ALGORITHM_UNKNOWN`, `DISK_FULL`, `DISK_REFUSED` or `STOPPED`.
 */
export async function unpackZip<File extends WantedEntry>(
  zipPath: string,
  wanted: readonly File[],
  folder: string,
  { fileMode, ...options }: MatchOptions & { readonly fileMode: number },
  signal: AbortSignal,
): Promise<ReadonlyMap<File, Sum>> {
  // A defect where names are chosen must not write outside of the folder.
  const unsafe = wanted.find(({ name }) => !isPlainName(name));
  if (unsafe !== undefined) throw new TypeError(`${quoted(unsafe.name)} is no plain file name`);
  const bytes = wanted.reduce((sum, file) => sum + file.bytes, 0);
  const limitMs = UNPACK_TIME_MS.whole + (bytes / 1024 ** 2) * UNPACK_TIME_MS.perMebibyte;
  const limit = timeLimit(Math.min(limitMs, LONGEST_TIMER_MS));
  const either = AbortSignal.any([signal, limit.signal]);
  const made: WantedEntry[] = [];
  const digests = new Map<File, Sum>();
  const unpackFrom = async (reader: ZipReader, archive: ZipFile) => {
    const matched = await matchDirectory(archive, wanted, options, either);
    if ((await readdir(folder)).length > 0) {
      for (const { name } of wanted) await rm(join(folder, name), { force: true });
    }
    const unpackOne = (match: MatchedEntry, all: AbortSignal) => {
      all.throwIfAborted();
      return withFile(join(folder, match.wanted.name), "wx", async (file) => {
        made.push(match.wanted);
        const write = (chunk: Buffer) => file.write(chunk);
        digests.set(match.wanted as File, await readEntry(reader, archive, match, write, all));
        await finishFile(file, fileMode);
      });
    };
    await forEachLimit(matched, ENTRIES_AT_ONCE, unpackOne, either);
  };
  try {
    await withFile(zipPath, "r", (zip) => withArchive(zip, signal, unpackFrom));
    return digests;
  } catch (error) {
    // The failure counts, and the next attempt replaces what stays.
    const remove = ({ name }: WantedEntry) => rm(join(folder, name), { force: true }).catch(() => {});
    await forEachLimit(made, ENTRIES_AT_ONCE, remove);
    const isLate = limit.signal.aborted && !signal.aborted;
    throw isLate ? wrong("unpacking it takes too long") : error;
  } finally {
    limit.clear();
  }
}

/**
 * The files of a ZIP whose content is not known before. `onCount`: as in `listDirectory`. Throws `ARCHIVE_WRONG`,
 * `DISK_REFUSED` or `STOPPED`.
 */
export async function listZip(
  zipPath: string,
  onCount: (entries: number) => void,
  signal: AbortSignal,
): Promise<ListedEntry[]> {
  return await withFile(zipPath, "r", (zip) =>
    withArchive(zip, signal, (_reader, archive) => listDirectory(archive, onCount, signal)),
  );
}

/** Verifies that a ZIP holds exactly the announced files. Writes nothing, and leaves the handle open. */
export async function verifyZip(
  zip: OpenFile,
  wanted: readonly Omit<WantedEntry, "name">[],
  options: MatchOptions,
  signal: AbortSignal,
): Promise<void> {
  const entries = wanted.map((entry) => ({ ...entry, name: "" }));
  await withArchive(zip, signal, async (reader, archive) => {
    const matched = await matchDirectory(archive, entries, options, signal);
    // Read only to prove it.
    for (const match of matched) await readEntry(reader, archive, match, async () => {}, signal);
  });
}

async function withArchive<Result>(
  zip: OpenFile,
  signal: AbortSignal,
  work: (reader: ZipReader, archive: ZipFile) => Promise<Result>,
): Promise<Result> {
  return await withReader(zip, signal, async (reader) => {
    if (await reader.hasTwoEnds()) throw wrong("it has two directories");
    const options = { autoClose: false, decodeStrings: false, validateEntrySizes: false };
    return await work(reader, await fromRandomAccessReaderPromise(reader, reader.bytes, options));
  });
}

/** Errors of yauzl and zlib become `ARCHIVE_WRONG`, those of the disk its faults, and a stop `STOPPED`. */
export async function withReader<Result>(
  zip: OpenFile,
  signal: AbortSignal,
  work: (reader: ZipReader) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(new ZipReader(zip, (await zip.stat()).size));
  } catch (error) {
    if (error instanceof Fault) throw error;
    if (signal.aborted) throw new Fault("STOPPED");
    const fault = faultOfDisk(error);
    throw fault instanceof Fault ? fault : wrong(messageOf(error), error);
  }
}

/** As `verifyContent`, of one entry. */
async function readEntry(
  reader: ZipReader,
  archive: ZipFile,
  match: MatchedEntry,
  write: (chunk: Buffer) => Promise<void>,
  signal: AbortSignal,
): Promise<Sum> {
  const { wanted, entry } = match;
  const { fileDataStart } = await archive.readLocalFileHeaderPromise(entry, { minimal: true });
  const { compressionMethod, compressedSize, crc32: crc } = entry;
  const chunks = contentOf(reader, fileDataStart, wanted, compressionMethod, signal, compressedSize);
  return verifyContent(chunks, wanted, write, signal, crc);
}

/** Passes the content of one file to `write`, and returns its SHA-256. Throws unless the content is as announced. */
export async function verifyContent(
  chunks: AsyncIterable<Buffer>,
  { bytes: announced, originalName, checksums }: WantedEntry,
  write: (chunk: Buffer) => Promise<void>,
  signal: AbortSignal,
  announcedCrc?: number,
): Promise<Sum> {
  const verification = startVerification(checksums);
  let bytes = 0;
  let crc = 0;
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    bytes += chunk.length;
    if (bytes > announced) throw wrongSize(originalName, "more", announced);
    if (announcedCrc !== undefined) crc = crc32(chunk, crc);
    verification.update(chunk);
    await write(chunk);
  }
  if (bytes < announced) throw wrongSize(originalName, bytes, announced);
  if (announcedCrc !== undefined && crc !== announcedCrc) throw wrong(`${quoted(originalName)} is damaged`);
  return verification.finish(`${quoted(originalName)} in the ZIP`);
}

/**
 * May yield a little more than was announced. Returns how many bytes of the archive it took: `packedBytes`, which are unknown
 * in an archive without its directory.
 */
export async function* contentOf(
  reader: ZipReader,
  from: number,
  wanted: WantedEntry,
  method: number,
  signal: AbortSignal,
  packedBytes?: number,
): AsyncGenerator<Buffer, number> {
  // Some programs mark an empty entry as deflated although it has no bytes.
  const isDeflated = method === DEFLATED && packedBytes !== 0;
  const mostBytes = isDeflated ? wanted.bytes + wanted.bytes / 64 + 64 : wanted.bytes;
  const end = from + (packedBytes ?? Math.min(Math.ceil(mostBytes), reader.bytes - from));
  let read = end - from;
  if (Math.max(read, wanted.bytes) <= SMALL_ENTRY_BYTES) {
    const stored = await reader.bytesAt(from, read);
    const small = isDeflated ? inflateSmall(stored, wanted) : { buffer: stored, read };
    read = small.read;
    yield small.buffer;
  } else if (isDeflated) read = yield* inflate(reader.stream(from, end), signal);
  else yield* reader.stream(from, end);
  if (packedBytes !== undefined && read !== packedBytes) throw wrong("an entry is longer than its content");
  return read;
}

function inflateSmall(deflated: Buffer, { bytes, originalName }: WantedEntry) {
  try {
    // `maxOutputLength` must be at least 1.
    const { buffer, engine } = inflateRawSync(deflated, { maxOutputLength: bytes + 1, info: true });
    return { buffer, read: engine.bytesWritten };
  } catch (error) {
    if (error instanceof RangeError) throw wrongSize(originalName, "more", bytes);
    throw error;
  }
}

/** Returns how many bytes it took. */
async function* inflate(
  deflated: AsyncIterable<Buffer>,
  signal: AbortSignal,
): AsyncGenerator<Buffer, number> {
  const inflater = createInflateRaw({ chunkSize: INFLATED_CHUNK_BYTES });
  // The inflater throws this failure below.
  pipeline(deflated, inflater, { signal }).catch(() => {});
  try {
    yield* inflater;
  } finally {
    // Bytes that follow are not read.
    inflater.destroy();
  }
  return inflater.bytesWritten;
}

/** Holds the directory of a thousand entries, or several small entries. */
const WINDOW_BYTES = 256 * 1024;
const CHUNK_BYTES = 256 * 1024;

const END_SIGNATURE = Buffer.from("PK\x05\x06");
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 0xffff;

/**
 * Reads a ZIP for yauzl, and trusts none of the positions that it names. Yauzl's own reader passes any position to the
 * system, whose error cannot be caught. The caller closes the handle.
 */
export class ZipReader extends RandomAccessReader {
  readonly bytes: number;
  readonly #file: OpenFile;
  /** The bytes read last, and some after them: directories are read in many small steps. */
  #window = Buffer.alloc(0);
  #windowStart = 0;

  constructor(file: OpenFile, bytes: number) {
    super();
    this.#file = file;
    this.bytes = bytes;
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null) => void,
  ): void {
    this.bytesAt(position, length).then((bytes) => {
      bytes.copy(buffer, offset);
      callback(null);
    }, callback);
  }

  override close(callback: (error: Error | null) => void): void {
    void nextTurn().then(() => callback(null));
  }

  /** The bytes from `start` to before `end`, in chunks that the caller may keep. */
  async *stream(start: number, end: number): AsyncGenerator<Buffer> {
    for (let at = start; at < end; ) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - at));
      const bytesRead = await this.#file.read(buffer, at);
      if (bytesRead === 0) throw new Error("it ends too early");
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  /**
   * Whether the file can be read as two archives, one of them hidden in the comment of the other. A signature counts if
   * its comment reaches exactly to the end of the file.
   */
  async hasTwoEnds(): Promise<boolean> {
    const tailBytes = Math.min(this.bytes, END_BYTES + MAX_COMMENT_BYTES);
    const tail = await this.bytesAt(this.bytes - tailBytes, tailBytes);
    let ends = 0;
    for (let at = tail.indexOf(END_SIGNATURE); at !== -1; at = tail.indexOf(END_SIGNATURE, at + 1)) {
      const commentAt = at + END_BYTES;
      if (commentAt <= tail.length && tail.readUInt16LE(commentAt - 2) === tail.length - commentAt) ends += 1;
    }
    return ends > 1;
  }

  /** A view of the window: the caller must not change it. */
  async bytesAt(position: number, length: number): Promise<Buffer> {
    if (!(Number.isSafeInteger(position) && position >= 0 && position + length <= this.bytes)) {
      throw new Error("it points outside of itself");
    }
    const inWindow = position - this.#windowStart;
    if (inWindow >= 0 && inWindow + length <= this.#window.length) {
      return this.#window.subarray(inWindow, inWindow + length);
    }
    const end = Math.min(this.bytes, position + Math.max(length, WINDOW_BYTES));
    const chunks: Buffer[] = [];
    for await (const chunk of this.stream(position, end)) chunks.push(chunk);
    this.#window = Buffer.concat(chunks);
    this.#windowStart = position;
    return this.#window.subarray(0, length);
  }
}
