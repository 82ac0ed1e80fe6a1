/**
 * A connection that delivers bytes in large chunks. TLS arrives in records of 16 KiB, and to pass each one through Node's
 * streams and undici costs more than to decrypt it. Here the records that arrive in one turn of the event loop are written
 * side by side into one block of memory, and are passed on together.
 */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { buildConnector } from "undici";

const BLOCK_BYTES = 1024 * 1024;
/** Blocks grow to `BLOCK_BYTES` while a large answer arrives. */
const FIRST_BLOCK_BYTES = 64 * 1024;
/** A rest shorter than one TLS record is not used. */
const LEAST_FREE_BYTES = 16 * 1024;

/** For undici's option `connect`. */
export function joinedConnector(options: buildConnector.BuildOptions): buildConnector.connector {
  let session: Buffer | undefined;
  return (target, callback) => {
    const records = new Records();
    const onread = { buffer: () => records.free(), callback: (bytes: number) => records.add(bytes) };
    // undici passes options that it does not know to Node's `connect`.
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
  #passingOn: NodeJS.Immediate | undefined;

  constructor(socket: Socket, records: Records) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    this.#records = records;
    records.onAdded = () => {
      this.#passingOn ??= setImmediate(() => this.#passOn());
    };
    socket.on("end", () => {
      this.#passOn();
      this.push(null);
    });
    socket.on("error", (error) => this.destroy(error));
    // After an end, unread bytes stay readable.
    socket.on("close", () => socket.readableEnded || this.destroy());
  }

  override _read(): void {
    this.#records.isReaderSlow = false;
    this.#socket.resume();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#socket.write(chunk, encoding, callback);
  }

  override _final(callback: () => void): void {
    this.#socket.end(callback);
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    clearImmediate(this.#passingOn);
    this.#socket.destroy();
    callback(error);
  }

  ref(): void {
    this.#socket.ref();
  }

  unref(): void {
    this.#socket.unref();
  }

  #passOn(): void {
    clearImmediate(this.#passingOn);
    this.#passingOn = undefined;
    for (const chunk of this.#records.takeAll()) {
      if (!this.push(chunk)) this.#records.isReaderSlow = true;
    }
  }
}

/** Bytes that have arrived and are not passed on. */
class Records {
  onAdded: (() => void) | undefined;
  isReaderSlow = false;
  #block = Buffer.allocUnsafeSlow(FIRST_BLOCK_BYTES);
  #start = 0;
  #end = 0;
  readonly #full: Buffer[] = [];

  /** Where the next record goes. */
  free(): Buffer {
    if (this.#block.byteLength - this.#end < LEAST_FREE_BYTES) this.#startBlock();
    return this.#block.subarray(this.#end);
  }

  /** Returns whether the connection may go on. */
  add(bytes: number): boolean {
    this.#end += bytes;
    this.onAdded?.();
    return !this.isReaderSlow;
  }

  *takeAll(): Iterable<Buffer> {
    yield* this.#full.splice(0);
    if (this.#end > this.#start) yield this.#block.subarray(this.#start, this.#end);
    this.#start = this.#end;
  }

  /** A block that was filled within one turn is followed by a larger one. */
  #startBlock(): void {
    const isGrowing = this.#start === 0;
    if (this.#end > this.#start) this.#full.push(this.#block.subarray(this.#start, this.#end));
    this.#block = Buffer.allocUnsafeSlow(isGrowing ? BLOCK_BYTES : FIRST_BLOCK_BYTES);
    this.#start = 0;
    this.#end = 0;
  }
}
