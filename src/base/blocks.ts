/** Large blocks of memory that are reused, so that a download of any size needs only a few of them. */

const LARGE_BYTES = 1024 * 1024;
const SMALL_BYTES = 64 * 1024;
const MAX_SPARE = 16;

const spare: Buffer[] = [];
/** The large blocks in use, by their memory. */
const blocks = new WeakMap<ArrayBufferLike, Block>();

/** A block that is filled from start to end and passed on in chunks. */
export class Block {
  readonly #memory: Buffer;
  /** The lengths of the chunks that readers still use, by offset. */
  readonly #chunks = new Map<number, number>();
  #chunkStart = 0;
  #chunkCount = 0;
  #end = 0;
  #isClosed = false;

  /** Only large blocks are reused. */
  constructor(isLarge: boolean) {
    const reused = isLarge ? spare.pop() : undefined;
    this.#memory = reused ?? Buffer.allocUnsafeSlow(isLarge ? LARGE_BYTES : SMALL_BYTES);
    if (isLarge) blocks.set(this.#memory.buffer, this);
  }

  /** The part that is not filled. */
  get free(): Buffer {
    return this.#memory.subarray(this.#end);
  }

  /** `NaN` before the first chunk. */
  get averageChunkBytes(): number {
    return this.#chunkStart / this.#chunkCount;
  }

  /** The size of the next chunk so far. */
  get chunkBytes(): number {
    return this.#end - this.#chunkStart;
  }

  /** Call it after writing this many bytes to the start of `free`. */
  fill(bytes: number): void {
    this.#end += bytes;
  }

  /** Returns all bytes since the last chunk. */
  takeChunk(): Buffer {
    const chunk = this.#memory.subarray(this.#chunkStart, this.#end);
    this.#chunks.set(chunk.byteOffset, chunk.byteLength);
    this.#chunkStart = this.#end;
    this.#chunkCount++;
    return chunk;
  }

  /** Call it after the last write. */
  close(): void {
    this.#isClosed = true;
    this.#reuse();
  }

  /** A part of a chunk is ignored: other readers may need the rest. */
  returnChunk({ byteOffset, byteLength }: Uint8Array): void {
    if (this.#chunks.get(byteOffset) !== byteLength) return;
    this.#chunks.delete(byteOffset);
    this.#reuse();
  }

  #reuse(): void {
    if (!this.#isClosed || this.#chunks.size > 0) return;
    // Only large blocks are in the map.
    const isReusable = blocks.delete(this.#memory.buffer);
    if (isReusable && spare.length < MAX_SPARE) spare.push(this.#memory);
  }
}

/** Call it when no reader and no running write needs the content of `chunk`. */
export function returnChunk(chunk: Uint8Array): void {
  blocks.get(chunk.buffer)?.returnChunk(chunk);
}
