/**
 * How sockets are read that carry no TLS: what arrives fast goes straight into blocks, which are used again. Node's own
 * way takes new memory for each 64 KiB.
 */
import type { OnReadOpts, Socket } from "node:net";
import { BLOCK_BYTES, fillBlock, takeBlock } from "../base/blocks.ts";

/** One block waits in the socket: undici reads all that waits at once, and would have to copy several into one. */
const HIGH_WATER_BYTES = BLOCK_BYTES;

/** All sockets read into it until much comes at once: what one has read is copied before another one does. */
const common = Buffer.allocUnsafeSlow(64 * 1024);

/** Node asks for it right after the callback of the same socket. */
let next: Uint8Array | undefined;

const onread: OnReadOpts = {
  buffer() {
    const buffer = next ?? common;
    next = undefined;
    return buffer;
  },
  callback(this: Socket, bytes: number, buffer: Uint8Array) {
    fillBlock(buffer, bytes);
    const content = buffer.subarray(0, bytes);
    const goesOn = this.push(buffer === common ? Buffer.from(content) : content);
    // Where it was not full, the answer may be over: the next read may begin with the head of another one, and a block that
    // holds a head is lost.
    if (bytes === buffer.byteLength) next = takeBlock();
    return goesOn;
  },
};

/** For whatever opens connections. */
export const PLAIN_READS = { onread, highWaterMark: HIGH_WATER_BYTES };
