/** The part of one file that is on the disk, with its hash so far. */
import type { OpenFile } from "../base/files.ts";
import { startVerification } from "../model/checksum.ts";
import type { PlannedFile } from "./plan.ts";

const READ_BYTES = 256 * 1024;
/** Flushing a large file as it grows leaves little for the last fsync. */
const FLUSH_EVERY_BYTES = 64 * 1024 * 1024;

/** Disposing of it waits for its last flush, and leaves the handle open. */
export class Part implements AsyncDisposable {
  readonly #handle: OpenFile;
  readonly #file: PlannedFile;
  #hash: ReturnType<typeof startVerification>;
  #unflushedBytes = 0;
  /** Stays rejected: a disk reports an error only once. */
  #flushing: Promise<void> | undefined;
  bytes = 0;

  constructor(handle: OpenFile, file: PlannedFile) {
    this.#handle = handle;
    this.#file = file;
    this.#hash = startVerification(file.checksums);
  }

  /** Hashes the bytes that an earlier attempt left. Without a checksum they cannot be proven, and are dropped. */
  async resume(signal: AbortSignal): Promise<void> {
    const { size } = await this.#handle.stat();
    if (size === 0) return;
    if (this.#file.checksums.length === 0 || size > this.#file.bytes) return this.startAgain();
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
    this.#hash = startVerification(this.#file.checksums);
    this.bytes = 0;
  }

  /** The SHA-256 of the whole file. Throws `CHECKSUM_MISMATCH` unless every checksum matches. */
  async finish(): Promise<string> {
    await this.#flushing;
    return this.#hash.finish(JSON.stringify(this.#file.originalName));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // `finish` throws it. Without `finish` the part is not used.
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
