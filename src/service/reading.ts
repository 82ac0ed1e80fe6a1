/**
 * How sockets are read that carry no TLS: what arrives fast goes straight into blocks, which are used again. Node's own
 * way takes new memory for each 64 KiB.
 */
import type { OnReadOpts, Socket } from "node:net";
import { BLOCK_BYTES, fillBlock, takeBlock } from "../base/blocks.ts";

/** What a read begins with, and goes back to where little comes at once; and what it goes on with where that was full. */
const SMALL_BYTES = 16 * 1024;
const MEDIUM_BYTES = 64 * 1024;
/** One block waits in the socket: undici reads all that waits at once, and would have to copy several into one. */
const HIGH_WATER_BYTES = BLOCK_BYTES;

/** Node asks for it right after the callback of the same socket. */
let next: Uint8Array | undefined;

const onread: OnReadOpts = {
  buffer() {
    const buffer = next ?? Buffer.allocUnsafeSlow(SMALL_BYTES);
    next = undefined;
    return buffer;
  },
  callback(this: Socket, bytes: number, buffer: Uint8Array) {
    fillBlock(buffer, bytes);
    const goesOn = this.push(buffer.subarray(0, bytes));
    next = afterReading(bytes, buffer.byteLength);
    return goesOn;
  },
};

/**
 * Where a buffer was full, more is waiting. Where it was not, the answer may be over: the next read may begin with the head of
 * another one, and a block that holds a head is lost.
 */
function afterReading(bytes: number, room: number): Uint8Array | undefined {
  if (bytes === room && bytes >= MEDIUM_BYTES) return takeBlock();
  return bytes >= SMALL_BYTES ? Buffer.allocUnsafeSlow(MEDIUM_BYTES) : undefined;
}

/** For whatever opens connections. */
export const PLAIN_READS = { onread, highWaterMark: HIGH_WATER_BYTES };
