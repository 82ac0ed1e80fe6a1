/** Reads a ZIP from its file, trusting none of the positions that it names. */
import { RandomAccessReader } from "yauzl";
import type { OpenFile } from "../base/files.ts";
import { nextTurn } from "../base/timers.ts";

/** Holds the directory of a thousand entries, or several small entries. */
const WINDOW_BYTES = 256 * 1024;
const CHUNK_BYTES = 256 * 1024;

const END_SIGNATURE = Buffer.from("PK\x05\x06");
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 0xffff;

/**
 * For yauzl: its own reader passes any position that the file names to the system, whose error cannot be caught. The
 * caller closes the handle.
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
    this.#slice(position, length).then((bytes) => {
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

  /** A view of the window: the caller must not change it. */
  bytesAt(position: number, length: number): Promise<Buffer> {
    return this.#slice(position, length);
  }

  /**
   * Whether the file can be read as two archives, one of them hidden in the comment of the other. A signature counts if
   * its comment reaches exactly to the end of the file.
   */
  async hasTwoEnds(): Promise<boolean> {
    const tailBytes = Math.min(this.bytes, END_BYTES + MAX_COMMENT_BYTES);
    const tail = await this.#slice(this.bytes - tailBytes, tailBytes);
    let ends = 0;
    for (let at = tail.indexOf(END_SIGNATURE); at !== -1; at = tail.indexOf(END_SIGNATURE, at + 1)) {
      const commentAt = at + END_BYTES;
      if (commentAt <= tail.length && tail.readUInt16LE(commentAt - 2) === tail.length - commentAt) ends += 1;
    }
    return ends > 1;
  }

  async #slice(position: number, length: number): Promise<Buffer> {
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
