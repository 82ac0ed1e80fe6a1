/** Unpacks a ZIP into a folder: exactly the announced files, each with its size and checksums, under our own names. */

import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { crc32, createInflateRaw, inflateRawSync, type ZlibOptions } from "node:zlib";
import { type Entry, fromRandomAccessReaderPromise, type ZipFile } from "yauzl";
import { forEachLimit } from "../base/concurrency.ts";
import { LONGEST_TIMER_MS } from "../base/deadline.ts";
import { faultOfDisk, finishFile } from "../base/durable.ts";
import { Fault, messageOf } from "../base/faults.ts";
import { lstat, type OpenFile, openFile, readdir, rm, unlink, withFile } from "../base/files.ts";
import { clearTimeout, setTimeout } from "../base/timers.ts";
import { startVerification } from "../model/checksum.ts";
import {
  DEFLATED,
  type DirectoryLimits,
  type ListedEntry,
  listDirectory,
  type MatchedEntry,
  matchDirectory,
  quoted,
  type WantedEntry,
  wrong,
  wrongSize,
} from "./unpack-directory.ts";
import { ZipReader } from "./unpack-reader.ts";

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

export interface UnpackLimits extends DirectoryLimits {
  /** Of all wanted files together. */
  readonly maxBytes: number;
  readonly deadlineMs: number;
  /** Of complete files. */
  readonly fileMode: number;
}

/**
 * All or nothing: after a failure, the files that this call made are removed. Files of an earlier attempt are replaced.
 * When it returns, every file is synced, and the folder is not. Throws `ARCHIVE_WRONG`, `SIZE_MISMATCH`,
 * `CHECKSUM_MISMATCH`, `ALGORITHM_UNKNOWN`, `LIMIT_EXCEEDED`, `TARGET_EXISTS`, `DISK_FULL`, `DISK_REFUSED` or
 * `STOPPED`.
 */
export async function unpackZip(
  zipPath: string,
  wanted: readonly WantedEntry[],
  folder: string,
  limits: UnpackLimits,
  signal: AbortSignal,
): Promise<void> {
  requirePlainTargets(wanted);
  const announced = wanted.reduce((sum, { bytes }) => sum + bytes, 0);
  if (announced > limits.maxBytes) {
    throw new Fault("LIMIT_EXCEEDED", {
      detail: `${announced} bytes, and at most ${limits.maxBytes} are allowed`,
    });
  }
  const deadline = startDeadline(limits.deadlineMs, signal);
  const made: string[] = [];
  try {
    const zip = await openFile(zipPath, "r");
    try {
      const reader = new ZipReader(zip, (await zip.stat()).size);
      const archive = await openArchive(reader);
      const matched = await matchDirectory(archive, wanted, limits, deadline.signal);
      if ((await readdir(folder)).length > 0) {
        for (const { wanted } of matched) await clearTarget(join(folder, wanted.target));
      }
      const unpackOne = async (match: MatchedEntry, signal: AbortSignal) => {
        signal.throwIfAborted();
        const path = join(folder, match.wanted.target);
        const file = await openFile(path, "wx");
        made.push(path);
        try {
          await readEntry(reader, archive, match, (chunk) => file.write(chunk), signal);
          await finishFile(file, limits.fileMode);
        } finally {
          await file.close();
        }
      };
      await forEachLimit(matched, ENTRIES_AT_ONCE, unpackOne, deadline.signal);
    } finally {
      await zip.close();
    }
  } catch (error) {
    await Promise.allSettled(made.map((path) => rm(path, { force: true })));
    throw faultOf(error, deadline.signal, folder);
  } finally {
    deadline.clear();
  }
}

/** The files of a ZIP whose content is not known before. Throws `ARCHIVE_WRONG`, `DISK_REFUSED` or `STOPPED`. */
export async function listZip(
  zipPath: string,
  limits: DirectoryLimits,
  signal: AbortSignal,
): Promise<ListedEntry[]> {
  try {
    return await withFile(zipPath, "r", async (zip) => {
      const archive = await openArchive(new ZipReader(zip, (await zip.stat()).size));
      return listDirectory(archive, limits, signal);
    });
  } catch (error) {
    throw faultOf(error, signal, zipPath);
  }
}

/** Verifies that a ZIP holds exactly the announced files. Writes nothing, and leaves the handle open. */
export async function verifyZip(
  zip: OpenFile,
  wanted: readonly Omit<WantedEntry, "target">[],
  limits: DirectoryLimits,
  signal: AbortSignal,
): Promise<void> {
  try {
    const reader = new ZipReader(zip, (await zip.stat()).size);
    const archive = await openArchive(reader);
    const entries = wanted.map((entry) => ({ ...entry, target: "" }));
    const matched = await matchDirectory(archive, entries, limits, signal);
    // Read only to prove it.
    for (const match of matched) await readEntry(reader, archive, match, async () => {}, signal);
  } catch (error) {
    throw faultOf(error, signal, "the ZIP");
  }
}

/** Targets come from `safeNames`. A defect there must not write outside of the folder. */
function requirePlainTargets(wanted: readonly WantedEntry[]): void {
  for (const { target } of wanted) {
    if (["", ".", ".."].includes(target) || basename(target) !== target || target.includes("\0")) {
      throw new TypeError(`${quoted(target)} is no plain file name`);
    }
  }
}

async function openArchive(reader: ZipReader): Promise<ZipFile> {
  if (await reader.hasTwoEnds()) throw wrong("it has two directories");
  const options = { autoClose: false, decodeStrings: false, validateEntrySizes: false };
  return fromRandomAccessReaderPromise(reader, reader.bytes, options);
}

/** Removes a file of an earlier attempt. Anything but a plain file is not ours to remove. */
async function clearTarget(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  if (found === undefined) return;
  if (!found.isFile()) throw new Fault("TARGET_EXISTS", { detail: path });
  await unlink(path);
}

/** Passes the content of one entry to `write`. Throws unless the content is as announced. */
async function readEntry(
  reader: ZipReader,
  archive: ZipFile,
  { wanted, entry }: MatchedEntry,
  write: (chunk: Buffer) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const verification = startVerification(wanted.checksums);
  const { fileDataStart } = await archive.readLocalFileHeaderPromise(entry, { minimal: true });
  let bytes = 0;
  let crc = 0;
  for await (const chunk of contentOf(reader, fileDataStart, entry, wanted, signal)) {
    signal.throwIfAborted();
    bytes += chunk.length;
    if (bytes > wanted.bytes) throw wrongSize(wanted.originalName, "more", wanted.bytes);
    crc = crc32(chunk, crc);
    verification.update(chunk);
    await write(chunk);
  }
  if (bytes < wanted.bytes) throw wrongSize(wanted.originalName, bytes, wanted.bytes);
  if (crc !== entry.crc32) throw wrong(`${quoted(wanted.originalName)} is damaged`);
  // Not inside the optional call, which would skip the verification if `onDigest` is missing.
  const sha256 = verification.finish(`${quoted(wanted.originalName)} in the ZIP`);
  wanted.onDigest?.(sha256);
}

/** May yield a little more than was announced. */
async function* contentOf(
  reader: ZipReader,
  from: number,
  entry: Entry,
  wanted: WantedEntry,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { compressedSize } = entry;
  const isSmall = Math.max(compressedSize, wanted.bytes) <= SMALL_ENTRY_BYTES;
  if (!isSmall) {
    const stored = reader.stream(from, from + compressedSize);
    yield* isDeflated(entry) ? inflate(stored, compressedSize, signal) : stored;
    return;
  }
  const stored = await reader.bytesAt(from, compressedSize);
  yield isDeflated(entry) ? inflateSmall(stored, wanted) : stored;
}

function inflateSmall(deflated: Buffer, { bytes, originalName }: WantedEntry): Buffer {
  try {
    // `maxOutputLength` must be at least 1.
    const { buffer, engine } = inflateRawSync(deflated, { maxOutputLength: bytes + 1, info: true });
    if (engine.bytesWritten !== deflated.length) throw wrong("an entry is longer than its content");
    return buffer;
  } catch (error) {
    if (error instanceof RangeError) throw wrongSize(originalName, "more", bytes);
    throw error;
  }
}

/** Some programs mark an empty entry as deflated although it has no bytes. */
function isDeflated({ compressionMethod, compressedSize }: Entry): boolean {
  return compressionMethod === DEFLATED && compressedSize > 0;
}

async function* inflate(
  deflated: AsyncIterable<Buffer>,
  bytes: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const inflater = createInflateRaw({ chunkSize: INFLATED_CHUNK_BYTES });
  // The inflater throws this failure below.
  pipeline(deflated, inflater, { signal }).catch(() => {});
  yield* inflater;
  if (inflater.bytesWritten !== bytes) throw wrong("an entry is longer than its content");
}

interface UnpackDeadline {
  /** Its reason is the fault to throw. */
  readonly signal: AbortSignal;
  clear(): void;
}

/** Its signal aborts at the deadline or with the caller's signal, whichever comes first. */
function startDeadline(deadlineMs: number, stop: AbortSignal): UnpackDeadline {
  const end = new AbortController();
  const onStop = () => end.abort(new Fault("STOPPED"));
  const timer = setTimeout(
    () => end.abort(wrong("unpacking it takes too long")),
    Math.min(deadlineMs, LONGEST_TIMER_MS),
  );
  stop.addEventListener("abort", onStop, { once: true });
  if (stop.aborted) onStop();
  return {
    signal: end.signal,
    clear() {
      clearTimeout(timer);
      stop.removeEventListener("abort", onStop);
    },
  };
}

/** Errors of yauzl and zlib become `ARCHIVE_WRONG`. */
function faultOf(error: unknown, signal: AbortSignal, folder: string): unknown {
  if (error instanceof Fault) return error;
  if (signal.aborted) return signal.reason instanceof Fault ? signal.reason : new Fault("STOPPED");
  const fault = faultOfDisk(error, error instanceof Error && "path" in error ? String(error.path) : folder);
  if (fault instanceof Fault) return fault;
  return wrong(messageOf(error), error);
}
