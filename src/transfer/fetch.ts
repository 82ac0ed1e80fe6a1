/**
 * Downloads the files of a plan, several at once. Each is hashed while it is written, and resumed where it broke off.
 */
import { join } from "node:path";
import { returnChunk } from "../base/blocks.ts";
import { mapLimit } from "../base/concurrency.ts";
import { durableStep } from "../base/disk.ts";
import { finishFile, syncFile } from "../base/durable.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault, tolerate } from "../base/faults.ts";
import { type OpenFile, openFile, rm } from "../base/files.ts";
import { type Sum, sumFile } from "../base/sums.ts";
import type { Stage } from "../ledger/port.ts";
import { startVerification } from "../model/checksum.ts";
import type { RemovedFile } from "../model/transfer.ts";
import type { Download } from "../service/port.ts";
import type { Plan, PlannedFile } from "./open-transfer.ts";
import type { Run } from "./run.ts";

/**
 * A broken connection is replaced while the file grows. After three in a row without any new byte, or twelve with too
 * few, the transfer has to wait: a connection without a new byte counts as four setbacks.
 */
const ENOUGH_BYTES = 64 * 1024;
const MAX_SETBACKS = 12;
const SETBACKS_IF_NO_BYTE = 4;

const READ_BYTES = 256 * 1024;
/** Flushing a large file as it grows leaves little for the last fsync. */
const FLUSH_EVERY_BYTES = 64 * 1024 * 1024;

export interface FetchContext {
  readonly run: Run;
  readonly plan: Plan;
  readonly stage: Stage;
  /** Called with the number of bytes that an earlier attempt left. */
  onFound(bytes: number): void;
  /** Called with the number of bytes that were just written. */
  onBytes(bytes: number): void;
}

/** A file of the plan that is in the stage. */
export interface FetchedFile extends PlannedFile {
  readonly sha256: Sum;
  /** The file does not match its checksum. */
  readonly doubt?: Fault;
}

/** A file of the plan that the service has removed. */
export interface LostFile extends PlannedFile {
  readonly removed: RemovedFile;
}

/** Fetches files, even if one is removed, or does not match its checksum: they may be all that is left of the transfer. */
export function fetchFiles(
  context: FetchContext,
  files: readonly PlannedFile[],
): Promise<(FetchedFile | LostFile)[]> {
  const { run, stage } = context;
  /** Asked for once, and only if the service refuses a file. */
  let asking: Promise<readonly RemovedFile[]> | undefined;
  const fetchOne = async (file: PlannedFile, either: AbortSignal) => {
    try {
      return await fetchFile(context, file, either);
    } catch (error) {
      if (!isRefused(error)) throw error;
      const { trackingId } = run.record;
      // Without an answer, what it said of the file counts.
      asking ??= run.source.removedFiles(trackingId, run.signal).catch(() => []);
      // A service may hide the ids.
      const removed = (await asking).find(({ id }) => id === file.id || id === "");
      if (removed === undefined) throw error;
      await rm(join(stage.folder, file.name), { force: true });
      return { ...file, removed };
    }
  };
  return mapLimit(files, run.tools.limits.filesPerTransfer, fetchOne, run.signal);
}

/** The service itself does not give the file out. */
function isRefused(error: unknown): boolean {
  if (!(error instanceof Fault) || error.answeredBy !== "service") return false;
  return ["NOT_FOUND", "TRANSFER_DELETED", "NO_SUCH_ENDPOINT", "BAD_REQUEST"].includes(error.code);
}

/** A file with a wrong checksum or size is fetched once more, from scratch. Throws a second `SIZE_MISMATCH`. */
async function fetchFile(
  context: FetchContext,
  file: PlannedFile,
  signal: AbortSignal,
): Promise<FetchedFile> {
  const path = join(context.stage.folder, file.name);
  const fetchOnce = async () => ({ ...file, sha256: await fetchOrResume(context, file, path, signal) });
  try {
    return await fetchOnce();
  } catch (error) {
    if (!hasCode(error, "CHECKSUM_MISMATCH", "SIZE_MISMATCH")) throw error;
  }
  await rm(path, { force: true });
  try {
    return await fetchOnce();
  } catch (error) {
    if (!hasCode(error, "CHECKSUM_MISMATCH")) throw error;
    await syncFile(path, context.run.handoff.fileMode);
    const sha256 = await sumFile(path, signal);
    if (sha256 === undefined) throw new Fault("CONTENT_CHANGED", { detail: path });
    return { ...file, sha256, doubt: error };
  }
}

/** Returns the SHA-256 of the complete, synced file. */
async function fetchOrResume(
  context: FetchContext,
  file: PlannedFile,
  path: string,
  signal: AbortSignal,
): Promise<Sum> {
  const { fileMode } = context.run.handoff;
  const made = await openFile(path, "ax+", fileMode).catch(tolerate("EEXIST"));
  const handle = made ?? (await openFile(path, "a+"));
  try {
    await using part = new Part(handle, file);
    if (made === undefined) await part.resume(signal);
    context.onFound(part.bytes);
    await receive(context, part, signal);
    if (part.bytes !== file.bytes) throw sizeMismatch(part);
    const digest = await part.finish();
    durableStep("file fetched");
    await finishFile(handle, fileMode, file.bytes);
    return digest;
  } finally {
    await handle.close();
  }
}

/**
 * Receives the rest of a file, over several connections if they break. Bytes count as new only beyond the furthest
 * point so far. Ends at the announced size: the checksum decides whether the bytes are right.
 */
async function receive(context: FetchContext, part: Part, signal: AbortSignal): Promise<void> {
  const { bytes } = part.file;
  let setbacks = 0;
  let furthest = part.bytes;
  // An empty file is requested, too.
  while (part.bytes !== bytes || bytes === 0) {
    try {
      return await receiveRest(context, part, signal);
    } catch (error) {
      if (!hasCode(error, "CONNECTION_LOST", "SERVICE_TIMEOUT", "RANGE_REFUSED")) throw error;
      const gained = part.bytes - furthest;
      setbacks = countSetbacks(setbacks, gained);
      if (setbacks >= MAX_SETBACKS) throw error;
      furthest = Math.max(furthest, part.bytes);
      if (error.code === "RANGE_REFUSED") await part.startAgain();
    }
  }
}

/** After a broken connection that brought this many new bytes. */
function countSetbacks(before: number, gained: number): number {
  if (gained >= ENOUGH_BYTES) return 0;
  return before + (gained > 0 ? 1 : SETBACKS_IF_NO_BYTE);
}

async function receiveRest(context: FetchContext, part: Part, signal: AbortSignal): Promise<void> {
  const { run, plan, onBytes } = context;
  const { file } = part;
  const resume = part.bytes === 0 ? {} : { resume: { offset: part.bytes, ...part.tag } };
  const options = { maxBytes: file.bytes, ...resume };
  const wanted = { id: file.id, name: file.originalName };
  const download = await run.source.service.openFile(plan.access, wanted, options, signal);
  demandContent(download, file);
  if (download.etag !== undefined) part.tag = { etag: download.etag };
  const onEnd = run.pace.awaitBytes(download.canResume);
  try {
    if (download.offset !== part.bytes) await part.startAgain();
    for await (const chunk of download.body) {
      await part.append(chunk);
      returnChunk(chunk);
      onBytes(chunk.byteLength);
    }
    if (isPage(download) && part.bytes !== file.bytes) throw sizeMismatch(part);
  } catch (error) {
    if (!isPage(download) || !hasCode(error, "SIZE_MISMATCH")) throw error;
    await part.startAgain();
    throw insteadOf(file, "an HTML page");
  } finally {
    onEnd();
    download.cancel();
  }
}

/** A proxy may answer with a page of its own, or with an empty body, and with the status of a success. */
function demandContent(download: Download, file: PlannedFile): void {
  const { totalBytes, cancel } = download;
  const mayBeFile = totalBytes === undefined || totalBytes === file.bytes;
  if (mayBeFile || (totalBytes > 0 && !isPage(download))) return;
  cancel();
  throw insteadOf(file, isPage(download) ? "an HTML page" : "an empty answer");
}

function sizeMismatch({ bytes, file }: Part): Fault {
  const detail = `${JSON.stringify(file.originalName)}: ${bytes} bytes instead of ${file.bytes}`;
  return new Fault("SIZE_MISMATCH", { detail });
}

function isPage({ contentType }: Download): boolean {
  return /^text\/html\b/i.test(contentType ?? "");
}

function insteadOf({ originalName }: PlannedFile, instead: string): Fault {
  const detail = `the file ${JSON.stringify(originalName)}: ${instead} came instead`;
  return new Fault("BAD_ANSWER", { detail, answeredBy: "intermediary" });
}

export function hasCode(error: unknown, ...codes: readonly FaultCode[]): error is Fault {
  return error instanceof Fault && codes.includes(error.code);
}

/**
 * The part of one file that is on the disk, with its hash so far. Disposing of it waits for its last flush, and leaves the
 * handle open.
 */
export class Part implements AsyncDisposable {
  readonly file: PlannedFile;
  bytes = 0;
  /** The version of the file at the service, once that has named one. */
  tag: { readonly etag?: string } = {};
  readonly #handle: OpenFile;
  #hash: ReturnType<typeof startVerification>;
  #unflushedBytes = 0;
  /** Stays rejected: a disk reports an error only once. */
  #flushing: Promise<void> | undefined;

  constructor(handle: OpenFile, file: PlannedFile) {
    this.#handle = handle;
    this.file = file;
    this.#hash = startVerification(file.checksums);
  }

  /** Hashes the bytes that an earlier attempt left. Without a checksum they cannot be proven, and are dropped. */
  async resume(signal: AbortSignal): Promise<void> {
    const { size } = await this.#handle.stat();
    if (size === 0) return;
    if (this.file.checksums.length === 0 || size > this.file.bytes) return this.startAgain();
    const buffer = new Uint8Array(READ_BYTES);
    while (this.bytes < size) {
      signal.throwIfAborted();
      const bytesRead = await this.#handle.read(buffer, this.bytes);
      if (bytesRead === 0) return this.startAgain();
      this.#hash.update(buffer.subarray(0, bytesRead));
      this.bytes += bytesRead;
    }
  }

  /** When it returns, the file has the chunk. */
  async append(chunk: Uint8Array): Promise<void> {
    const writing = this.#handle.write(chunk);
    this.#hash.update(chunk);
    await writing;
    this.bytes += chunk.byteLength;
    this.#unflushedBytes += chunk.byteLength;
    if (this.#unflushedBytes >= FLUSH_EVERY_BYTES) await this.#startFlush();
  }

  async startAgain(): Promise<void> {
    await this.#handle.truncate();
    this.#hash = startVerification(this.file.checksums);
    this.bytes = 0;
  }

  /** The SHA-256 of the whole file. Throws `CHECKSUM_MISMATCH` unless every checksum matches. */
  async finish(): Promise<Sum> {
    await this.#flushing;
    return this.#hash.finish(JSON.stringify(this.file.originalName));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // `finish` throws the failure of a flush. Without `finish` the part is not used.
    await this.#flushing?.catch(() => {});
  }

  /** Returns while the flush runs. Waits for the flush before, so that a slow disk slows the download down. */
  async #startFlush(): Promise<void> {
    await this.#flushing;
    this.#unflushedBytes = 0;
    this.#flushing = this.#handle.datasync();
    // Thrown by the next flush, or by `finish`.
    this.#flushing.catch(() => {});
  }
}
