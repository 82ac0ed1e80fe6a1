/** What is here of one file, with its hash so far. */
import { fillBlock, giveBack, passOn, takeBlock } from "../base/blocks.ts";
import type { Descriptor } from "../base/descriptor.ts";
import { startThreadHash, type ThreadHash } from "../base/hash-thread.ts";
import { WriteBehind } from "../base/write-behind.ts";
import { algorithmsFor, type Checksum, compareDigests, startVerification } from "../model/checksum.ts";
import type { PlannedFile } from "./plan.ts";

/** To hash what is smaller takes less than to have it hashed on another thread. */
const THREAD_FROM_BYTES = 4 * 1024 * 1024;

/** Disposing of it waits for what it has begun, and leaves the handle open. */
export class Part implements AsyncDisposable {
  readonly #handle: Descriptor;
  readonly #file: PlannedFile;
  readonly #writer: WriteBehind;
  #hash: Hashing;
  bytes = 0;

  constructor(handle: Descriptor, file: PlannedFile) {
    this.#handle = handle;
    this.#file = file;
    this.#writer = new WriteBehind(handle);
    this.#hash = startHashing(file);
  }

  /** Hashes what an earlier run left; without a checksum nothing would prove that it still fits. */
  async takeUp(signal: AbortSignal): Promise<void> {
    const { size } = await this.#handle.stat();
    if (size === 0) return;
    if (this.#file.checksums.length === 0 || size > this.#file.bytes) return this.startAgain();
    while (this.bytes < size) {
      signal.throwIfAborted();
      const block = takeBlock();
      const bytesRead = await this.#handle.read(block, this.bytes);
      if (bytesRead === 0) return this.startAgain();
      fillBlock(block, bytesRead);
      const chunk = passOn(block.subarray(0, bytesRead));
      await this.#hash.update(chunk, () => giveBack(chunk));
      this.bytes += bytesRead;
    }
  }

  /** Returns before they are written. `onWritten` hears how many bytes are in the file. */
  async append(chunk: Uint8Array, onWritten: (bytes: number) => void): Promise<void> {
    let uses = 2;
    const used = () => {
      uses -= 1;
      if (uses === 0) giveBack(chunk);
    };
    this.bytes += chunk.byteLength;
    const hashed = this.#hash.update(chunk, used);
    const written = this.#writer.write(chunk, () => {
      onWritten(chunk.byteLength);
      used();
    });
    await Promise.all([hashed, written]);
  }

  /** When it returns, the file has every byte that was appended. */
  async drain(): Promise<void> {
    await this.#writer.drain();
  }

  async startAgain(): Promise<void> {
    await this.drain();
    await this.#handle.truncate();
    this.#hash.drop();
    this.#hash = startHashing(this.#file);
    this.bytes = 0;
  }

  /** The SHA-256 of all of it. Throws `CHECKSUM_MISMATCH` unless every checksum matches. */
  async finish(): Promise<string> {
    return this.#hash.finish();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hash.drop();
    // What went wrong was told before.
    await this.#writer.drain().catch(() => {});
  }
}

interface Hashing {
  update: ThreadHash["update"];
  finish(): Promise<string>;
  /** Nobody wants to know any more. */
  drop(): void;
}

function startHashing(file: PlannedFile): Hashing {
  const what = JSON.stringify(file.originalName);
  if (file.bytes >= THREAD_FROM_BYTES) return startOnThread(file.checksums, what);
  const verification = startVerification(file.checksums);
  return {
    async update(chunk, onHashed) {
      verification.update(chunk);
      onHashed();
    },
    finish: async () => verification.finish(what),
    drop() {},
  };
}

function startOnThread(checksums: readonly Checksum[], what: string): Hashing {
  const hash = startThreadHash(algorithmsFor(checksums));
  let isOver = false;
  return {
    update: hash.update,
    async finish() {
      isOver = true;
      return compareDigests(checksums, await hash.finish(), what);
    },
    drop() {
      if (!isOver) hash.finish().catch(() => {});
      isOver = true;
    },
  };
}
