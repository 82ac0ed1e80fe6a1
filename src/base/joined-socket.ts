/**
 * A connection that delivers bytes in large chunks. TLS arrives in records of 16 KiB, and passing each one through Node's
 * streams and undici costs more than decrypting it. Here the records that arrive in one turn of the event loop are written
 * side by side into one block of memory, and are passed on together.
 */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { buildConnector } from "undici";
import { Block } from "./blocks.ts";

/** A block with less room than this, which one TLS record needs, is not filled further. */
const MIN_FREE_BYTES = 16 * 1024;
/** The connection pauses while this many bytes wait for the reader. */
const MAX_WAITING_BYTES = 512 * 1024;
/** If chunks have at least this size on average, the answer is large, and so is the next block. */
const MIN_LARGE_CHUNK_BYTES = 16 * 1024;

/** For undici's option `connect`. */
export function joinedConnector(options: buildConnector.BuildOptions): buildConnector.connector {
  /** The TLS session of the last connection, which the next one resumes. */
  let session: Buffer | undefined;
  return (target, callback) => {
    const records = new Records();
    const onread = {
      buffer: () => records.free,
      /** Pauses the connection if it returns `false`. */
      callback(bytes: number) {
        records.add(bytes);
        return !records.isFull;
      },
    };
    // undici passes `onread` on to Node's `connect`. The spread is for its type, which lacks it.
    const connect = buildConnector({
      ...options,
      ...(session === undefined ? {} : { session }),
      ...{ onread },
    });
    connect(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      socket.on("session", (next: Buffer) => {
        session = next;
      });
      // undici needs no more of a socket than a stream, `ref` and `unref`.
      callback(null, new JoinedSocket(socket, records) as Duplex as Socket);
    });
  };
}

class JoinedSocket extends Duplex {
  readonly #socket: Socket;
  readonly #records: Records;
  #isWanted = false;
  /** Set when the connection has ended. Bytes that have arrived are passed on first. */
  #end: { readonly error?: Error | undefined; readonly isComplete: boolean } | undefined;
  #turn: NodeJS.Immediate | undefined;

  constructor(socket: Socket, records: Records) {
    // Without read-ahead: `_read` is called only when the reader takes all that was pushed.
    super({ allowHalfOpen: false, readableHighWaterMark: 1 });
    this.#socket = socket;
    this.#records = records;
    records.onAdded = () => this.#passOnSoon();
    socket.on("end", () => this.#finish({ isComplete: true }));
    socket.on("error", (error) => this.#finish({ error, isComplete: false }));
    socket.on("close", () => this.#finish({ isComplete: false }));
    socket.resume();
  }

  override _read(): void {
    this.#isWanted = true;
    if (this.#records.waitingBytes > 0) this.#passOnSoon();
    // Not at once: Node calls this while undici takes the last bytes, which would be lost.
    else if (this.#end !== undefined) process.nextTick(() => this.#passOn());
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#socket.write(chunk, encoding, callback);
  }

  override _final(callback: () => void): void {
    this.#socket.end(callback);
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    clearImmediate(this.#turn);
    this.#socket.destroy();
    callback(error);
  }

  ref(): void {
    this.#socket.ref();
  }

  unref(): void {
    this.#socket.unref();
  }

  /** The first end counts. It is passed on without delay, or undici would send the next request on this connection. */
  #finish(end: { readonly error?: Error; readonly isComplete: boolean }): void {
    this.#end ??= end;
    if (this.#records.waitingBytes === 0) this.#passOn();
    else this.#passOnSoon();
  }

  #passOnSoon(): void {
    this.#turn ??= setImmediate(() => this.#passOn());
  }

  /** One chunk at a time: the reader would copy several into one. */
  #passOn(): void {
    clearImmediate(this.#turn);
    this.#turn = undefined;
    if (!this.#isWanted) return;
    const chunk = this.#records.take();
    if (chunk === undefined && this.#end === undefined) return;
    this.#isWanted = false;
    if (chunk !== undefined) this.push(chunk);
    else if (this.#end?.isComplete) this.push(null);
    else this.destroy(this.#end?.error);
    if (!this.#records.isFull) this.#socket.resume();
  }
}

/** Bytes that have arrived and are not passed on. */
class Records {
  onAdded: (() => void) | undefined;
  waitingBytes = 0;
  #block = new Block(false);
  readonly #chunks: Buffer[] = [];

  get isFull(): boolean {
    return this.waitingBytes >= MAX_WAITING_BYTES;
  }

  /** Where the next record goes. */
  get free(): Buffer {
    if (this.#block.free.byteLength < MIN_FREE_BYTES) this.#startBlock();
    return this.#block.free;
  }

  add(bytes: number): void {
    this.#block.fill(bytes);
    this.waitingBytes += bytes;
    this.onAdded?.();
  }

  take(): Buffer | undefined {
    if (this.#chunks.length === 0) this.#endChunk();
    const chunk = this.#chunks.shift();
    this.waitingBytes -= chunk?.byteLength ?? 0;
    return chunk;
  }

  #endChunk(): void {
    if (this.#block.chunkBytes > 0) this.#chunks.push(this.#block.takeChunk());
  }

  #startBlock(): void {
    this.#endChunk();
    this.#block.close();
    this.#block = new Block(this.#block.averageChunkBytes >= MIN_LARGE_CHUNK_BYTES);
  }
}
