/**
 * Downloads the files of a plan, several at once. Each is hashed while it is written, and resumed where it broke off.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { returnChunk } from "../base/blocks.ts";
import { mapLimit } from "../base/concurrency.ts";
import { durableStep } from "../base/disk.ts";
import { faultOfDisk, finishFile, onDisk, syncFile } from "../base/durable.ts";
import { Fault, tolerate } from "../base/faults.ts";
import { type OpenFile, openFile, rm, withFile } from "../base/files.ts";
import type { Stage } from "../ledger/port.ts";
import type { Download, ServicePort, TransferAccess } from "../service/port.ts";
import { Part } from "./part.ts";
import type { ContentFile, Plan, PlannedFile } from "./plan.ts";

/**
 * A broken connection is replaced while the file grows. After three in a row without any new byte, or twelve with too
 * few, the transfer has to wait: a connection without a new byte counts as four setbacks.
 */
const ENOUGH_BYTES = 64 * 1024;
const MAX_SETBACKS = 12;
const SETBACKS_IF_NO_BYTE = 4;

const READ_BYTES = 256 * 1024;

export interface FetchContext {
  readonly service: ServicePort;
  readonly access: TransferAccess;
  readonly stage: Stage;
  /** How many files at once. */
  readonly parallel: number;
  /** Of complete files. */
  readonly fileMode: number;
  /** Called with the number of bytes that were just written. */
  onBytes(bytes: number): void;
  /** Called with the number of bytes that an earlier attempt left. */
  onFound(bytes: number): void;
  /**
   * A body begins, and ends when the returned function is called. `canResume`: the service can send the rest of a file.
   */
  onBody(canResume: boolean): () => void;
}

/** Every file of a transfer. `doubt`: one of them does not match its checksum. */
export interface Fetched {
  readonly files: readonly ContentFile[];
  readonly doubt: Fault | undefined;
}

/** Fetches all files, even if one does not match its checksum: they may be all that is left of the transfer. */
export async function fetchFiles(context: FetchContext, plan: Plan, signal: AbortSignal): Promise<Fetched> {
  const fetchOne = async (file: PlannedFile, either: AbortSignal) => ({
    file,
    ...(await fetchFile(context, file, join(context.stage.folder, file.name), either)),
  });
  const outcomes = await mapLimit(plan.files, context.parallel, fetchOne, signal);
  return {
    files: outcomes.map(({ file, sha256, doubt }) => ({
      ...file,
      sha256,
      isProven: doubt === undefined && file.checksums.length > 0,
    })),
    doubt: outcomes.find(({ doubt }) => doubt !== undefined)?.doubt,
  };
}

interface FetchedFile {
  readonly sha256: string;
  /** The file did not match its checksum twice. */
  readonly doubt?: Fault;
}

/** A file with a wrong checksum or size is fetched once more, from scratch. Throws a second `SIZE_MISMATCH`. */
async function fetchFile(
  context: FetchContext,
  file: PlannedFile,
  path: string,
  signal: AbortSignal,
): Promise<FetchedFile> {
  const differs = (error: unknown): error is Fault =>
    error instanceof Fault && ["CHECKSUM_MISMATCH", "SIZE_MISMATCH"].includes(error.code);
  try {
    return { sha256: await fetchOnce(context, file, path, signal) };
  } catch (error) {
    if (!differs(error)) throw error;
  }
  await rm(path, { force: true });
  try {
    return { sha256: await fetchOnce(context, file, path, signal) };
  } catch (error) {
    if (!differs(error) || error.code === "SIZE_MISMATCH") throw error;
    await syncFile(path, context.fileMode);
    return { sha256: await hashFile(path, signal), doubt: error };
  }
}

/** The digest of a file, in hexadecimal digits. */
export async function hashFile(path: string, signal: AbortSignal, algorithm = "sha256"): Promise<string> {
  const hash = createHash(algorithm);
  const buffer = new Uint8Array(READ_BYTES);
  await withFile(path, "r", async (file) => {
    for (let at = 0, count = -1; count !== 0; at += count) {
      signal.throwIfAborted();
      count = await file.read(buffer, at);
      hash.update(buffer.subarray(0, count));
    }
  });
  return hash.digest("hex");
}

async function fetchOnce(
  context: FetchContext,
  file: PlannedFile,
  path: string,
  signal: AbortSignal,
): Promise<string> {
  const { handle, isNew } = await onDisk(path, () => openPart(path, context.fileMode));
  try {
    await using part = new Part(handle, file);
    if (!isNew) await part.resume(signal);
    context.onFound(part.bytes);
    await receive(context, file, part, signal);
    if (part.bytes !== file.bytes) throw sizeMismatch(part, file);
    const digest = await part.finish();
    durableStep("file fetched");
    await finishFile(handle, context.fileMode, file.bytes);
    return digest;
  } catch (error) {
    throw faultOfDisk(error, path);
  } finally {
    await handle.close();
  }
}

async function openPart(path: string, mode: number): Promise<{ handle: OpenFile; isNew: boolean }> {
  const made = await openFile(path, "ax+", mode).catch(tolerate("EEXIST"));
  return { handle: made ?? (await openFile(path, "a+")), isNew: made !== undefined };
}

/**
 * Receives the rest of a file, over several connections if they break. Bytes count as new only beyond the furthest
 * point so far. Ends at the announced size: the checksum decides whether the bytes are right.
 */
async function receive(
  context: FetchContext,
  file: PlannedFile,
  part: Part,
  signal: AbortSignal,
): Promise<void> {
  const tag: { etag?: string } = {};
  const setbacks = new Setbacks(part.bytes);
  while (part.bytes !== file.bytes || file.bytes === 0) {
    try {
      return await receiveRest(context, file, part, tag, signal);
    } catch (error) {
      if (!isInterruption(error)) throw error;
      if (!setbacks.add(part.bytes)) throw error;
      if (error.code === "RANGE_REFUSED") await part.startAgain();
    }
  }
}

/** Counts broken connections that gained too little. */
class Setbacks {
  #furthest: number;
  #count = 0;

  constructor(bytes: number) {
    this.#furthest = bytes;
  }

  /** `bytes`: the size of the file after another break. Returns whether a further connection is worthwhile. */
  add(bytes: number): boolean {
    const gained = bytes - this.#furthest;
    this.#count = gained >= ENOUGH_BYTES ? 0 : this.#count + (gained > 0 ? 1 : SETBACKS_IF_NO_BYTE);
    this.#furthest = Math.max(this.#furthest, bytes);
    return this.#count < MAX_SETBACKS;
  }
}

async function receiveRest(
  { service, access, onBytes, onBody }: FetchContext,
  file: PlannedFile,
  part: Part,
  tag: { etag?: string },
  signal: AbortSignal,
): Promise<void> {
  const options = {
    maxBytes: file.bytes,
    ...(part.bytes === 0 ? {} : { resume: { offset: part.bytes, ...tag } }),
  };
  const download = await service.openFile(access, { id: file.id, name: file.originalName }, options, signal);
  demandContent(download, file);
  if (download.etag !== undefined) tag.etag = download.etag;
  const onEnd = onBody(download.canResume);
  try {
    if (download.offset !== part.bytes) await part.startAgain();
    for await (const chunk of download.body) {
      await part.append(chunk);
      returnChunk(chunk);
      onBytes(chunk.byteLength);
    }
    if (isPage(download) && part.bytes !== file.bytes) throw sizeMismatch(part, file);
  } catch (error) {
    const isOtherSize = error instanceof Fault && error.code === "SIZE_MISMATCH";
    if (!isPage(download) || !isOtherSize) throw error;
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
  if (totalBytes === undefined || totalBytes === file.bytes || (totalBytes > 0 && !isPage(download))) return;
  cancel();
  throw insteadOf(file, isPage(download) ? "an HTML page" : "an empty answer");
}

function sizeMismatch({ bytes }: Part, file: PlannedFile): Fault {
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

function isInterruption(error: unknown): error is Fault {
  return (
    error instanceof Fault && ["CONNECTION_LOST", "SERVICE_TIMEOUT", "RANGE_REFUSED"].includes(error.code)
  );
}
