/** Bodies as streams of chunks, and transformations that never hold a whole body in memory. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";

export type Chunks = Iterable<Buffer> | AsyncIterable<Buffer>;

/** The bytes from `start` to `end`, exclusive. */
export async function* slice(chunks: Chunks, start: number, end: number): AsyncGenerator<Buffer> {
  let at = 0;
  if (start >= end) return;
  for await (const chunk of chunks) {
    const from = Math.max(start - at, 0);
    const to = Math.min(end - at, chunk.length);
    if (from < to) yield chunk.subarray(from, to);
    at += chunk.length;
    if (at >= end) return;
  }
}

export async function countBytes(chunks: Chunks, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    bytes += chunk.length;
  }
  return bytes;
}

/** Yields the bytes before `place`, calls `act` there (or at the end, if that comes first), and continues if it returns so. */
export async function* interruptAt(
  chunks: Chunks,
  place: number,
  act: () => Promise<"continue" | "stop">,
): AsyncGenerator<Buffer> {
  let left = place;
  let hasActed = false;
  for await (const chunk of chunks) {
    if (hasActed || chunk.length <= left) {
      yield chunk;
      left -= chunk.length;
      continue;
    }
    if (left > 0) yield chunk.subarray(0, left);
    hasActed = true;
    if ((await act()) === "stop") return;
    yield chunk.subarray(left);
  }
  if (!hasActed) await act();
}

/** Splits the chunks into small ones, and pauses after each. */
export async function* drip(
  chunks: Chunks,
  bytes: number,
  pause: () => Promise<void>,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += bytes) {
      yield chunk.subarray(at, at + bytes);
      await pause();
    }
  }
}

/** Flips the lowest bit of the byte at `place`. */
export async function* flipBitAt(chunks: Chunks, place: number): AsyncGenerator<Buffer> {
  let at = 0;
  for await (const chunk of chunks) {
    const byte = chunk[place - at];
    if (byte === undefined) {
      yield chunk;
    } else {
      const copy = Buffer.from(chunk);
      copy[place - at] = byte ^ 1;
      yield copy;
    }
    at += chunk.length;
  }
}

export async function* append(chunks: Chunks, more: Iterable<Buffer>): AsyncGenerator<Buffer> {
  yield* chunks;
  yield* more;
}

export async function* gzip(chunks: Chunks): AsyncGenerator<Buffer> {
  const zipped = createGzip();
  const fed = pipeline(Readable.from(chunks), zipped);
  // Whoever reads it gets an error.
  fed.catch(() => zipped.destroy());
  try {
    yield* zipped;
  } finally {
    zipped.destroy();
  }
}
