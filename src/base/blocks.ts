/** Large blocks of memory that are reused, so that a download of any size needs only a few of them. */

const LARGE_BYTES = 1024 * 1024;
const SMALL_BYTES = 64 * 1024;
const MAX_SPARE = 16;

const spare: Buffer[] = [];
const blocks = new WeakMap<ArrayBufferLike, Block>();

/** Filled from its start to its end, and passed on in chunks. */
export class Block {
  readonly #memory: Buffer;
  /** The length of each chunk that was not returned, by its offset. */
  readonly #chunks = new Map<number, number>();
  #chunkStart = 0;
  #chunkCount = 0;
  #end = 0;
  #isClosed = false;

  /** Only large blocks are reused. */
  constructor(isLarge: boolean) {
    this.#memory = (isLarge && spare.pop()) || Buffer.allocUnsafeSlow(isLarge ? LARGE_BYTES : SMALL_BYTES);
    if (isLarge) blocks.set(this.#memory.buffer, this);
  }

  /** The part that is not filled. */
  get free(): Buffer {
    return this.#memory.subarray(this.#end);
  }

  get averageChunkBytes(): number {
    return this.#chunkStart / this.#chunkCount;
  }

  /** The number of bytes that the next chunk has so far. */
  get chunkBytes(): number {
    return this.#end - this.#chunkStart;
  }

  /** Bytes were written at the start of `free`. */
  fill(bytes: number): void {
    this.#end += bytes;
  }

  /** All bytes that are in no chunk yet. */
  takeChunk(): Buffer {
    const chunk = this.#memory.subarray(this.#chunkStart, this.#end);
    this.#chunks.set(chunk.byteOffset, chunk.byteLength);
    this.#chunkStart = this.#end;
    this.#chunkCount++;
    return chunk;
  }

  /** Nothing is written to it from now on. */
  close(): void {
    this.#isClosed = true;
    this.#reuse();
  }

  /** Ignores a part of a chunk: other readers may need the rest. */
  returnChunk({ byteOffset, byteLength }: Uint8Array): void {
    if (this.#chunks.get(byteOffset) !== byteLength) return;
    this.#chunks.delete(byteOffset);
    this.#reuse();
  }

  #reuse(): void {
    if (!this.#isClosed || this.#chunks.size > 0 || !blocks.delete(this.#memory.buffer)) return;
    if (spare.length < MAX_SPARE) spare.push(this.#memory);
  }
}

/** Called when no reader, and no running write, needs the content of `chunk` any longer. */
export function returnChunk(chunk: Uint8Array): void {
  blocks.get(chunk.buffer)?.returnChunk(chunk);
}
