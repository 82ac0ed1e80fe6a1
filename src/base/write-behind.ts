/**
 * Writes to the end of a file while the next bytes are on their way: one write at a time, of all that has come meanwhile.
 * A large file is sent to the disk as it grows, so that the last fsync does not have to wait for all of it.
 */
import type { Descriptor } from "./descriptor.ts";

/** So much may wait before whoever brings more has to. */
const MOST_WAITING_BYTES = 2 * 1024 * 1024;
const FLUSH_EVERY_BYTES = 64 * 1024 * 1024;

interface Waiting {
  readonly chunk: Uint8Array;
  /** Called when the file has it. */
  readonly onWritten: () => void;
}

export class WriteBehind {
  readonly #file: Pick<Descriptor, "writev" | "datasync">;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  /** Ends when nothing waits any more; never fails. */
  #writing: Promise<void> | undefined;
  #flushing: Promise<void> | undefined;
  #unflushedBytes = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(file: Pick<Descriptor, "writev" | "datasync">) {
    this.#file = file;
  }

  /** The chunk stays as it is until `onWritten` was called. Throws what an earlier write threw. */
  async write(chunk: Uint8Array, onWritten: () => void): Promise<void> {
    this.#throwFailure();
    this.#waiting.push({ chunk, onWritten });
    this.#waitingBytes += chunk.byteLength;
    this.#writing ??= this.#writeAll();
    while (this.#waitingBytes > MOST_WAITING_BYTES) await this.#writing;
    this.#throwFailure();
  }

  /** When it returns, the file has all that was given; what it was given may not be on the disk yet. */
  async drain(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    await this.#flushing;
    this.#throwFailure();
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const batch = this.#waiting;
        this.#waiting = [];
        this.#waitingBytes = 0;
        await writeWhole(
          this.#file,
          batch.map(({ chunk }) => chunk),
        );
        for (const { chunk, onWritten } of batch) {
          this.#unflushedBytes += chunk.byteLength;
          onWritten();
        }
        this.#flushNowAndThen();
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#writing = undefined;
    }
  }

  /** One at a time, beside the writes. What it finds wrong is told only once by the disk, so it is kept. */
  #flushNowAndThen(): void {
    if (this.#flushing !== undefined || this.#unflushedBytes < FLUSH_EVERY_BYTES) return;
    this.#unflushedBytes = 0;
    this.#flushing = this.#file.datasync().then(
      () => {
        this.#flushing = undefined;
      },
      (error: unknown) => this.#fail(error),
    );
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

/** A system may take less than all, as when the disk is nearly full: then the next call says why. */
async function writeWhole(file: Pick<Descriptor, "writev">, chunks: readonly Uint8Array[]): Promise<void> {
  let rest = chunks.filter((chunk) => chunk.byteLength > 0);
  while (rest.length > 0) {
    rest = skipBytes(rest, await file.writev(rest));
  }
}

function skipBytes(chunks: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let skipped = 0;
  return chunks.flatMap((chunk) => {
    const from = Math.min(chunk.byteLength, Math.max(0, bytes - skipped));
    skipped += chunk.byteLength;
    return from < chunk.byteLength ? [chunk.subarray(from)] : [];
  });
}
