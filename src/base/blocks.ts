/**
 * Memory for large bodies that is used over and over. Memory that is new each time has to be found, cleared and
 * collected, which costs more than what is done with it. Every thread can see it.
 *
 * A block is used again only where every byte that was filled in was passed on, and all that was passed on was given
 * back: then nobody can have kept a part of it. In any other case it is left to the garbage collector.
 */

/** Large enough that what is done per block does not count, small enough for the processor's cache. */
export const BLOCK_BYTES = 256 * 1024;
const MOST_FREE = 128;
/**
 * The garbage collector does not count shared memory, and would let what is lost of it pile up. Beyond so many blocks there
 * is ordinary memory, which it counts, and which is not kept.
 */
const MOST_SHARED = 160;

interface Lease {
  filledBytes: number;
  passedBytes: number;
  /** How many parts of it are with somebody. */
  parts: number;
}

const free: SharedArrayBuffer[] = [];
let shared = 0;
const collected = new FinalizationRegistry<undefined>(() => {
  shared -= 1;
});
const leases = new WeakMap<ArrayBufferLike, Lease>();
const passed = new WeakSet<Uint8Array>();

/** A whole block, with whatever was in it before. */
export function takeBlock(): Uint8Array {
  const memory = free.pop() ?? makeMemory();
  leases.set(memory, { filledBytes: 0, passedBytes: 0, parts: 0 });
  return new Uint8Array(memory);
}

function makeMemory(): ArrayBufferLike {
  if (shared >= MOST_SHARED) return new ArrayBuffer(BLOCK_BYTES);
  const memory = new SharedArrayBuffer(BLOCK_BYTES);
  shared += 1;
  collected.register(memory, undefined);
  return memory;
}

/** Said once of a block: so many bytes at its beginning are content. Anything but a block is left alone. */
export function fillBlock(block: Uint8Array, bytes: number): void {
  const lease = leases.get(block.buffer);
  if (lease !== undefined) lease.filledBytes = bytes;
}

/** A part of a block goes to somebody, who may give it back, and need not. Parts do not overlap. */
export function passOn(part: Uint8Array): Uint8Array {
  const lease = leases.get(part.buffer);
  if (lease === undefined) return part;
  lease.passedBytes += part.byteLength;
  lease.parts += 1;
  passed.add(part);
  return part;
}

/** Nobody may look at it from then on. What was not passed on, or was given back before, is left alone. */
export function giveBack(part: Uint8Array): void {
  const lease = leases.get(part.buffer);
  if (lease === undefined || !passed.delete(part)) return;
  lease.parts -= 1;
  if (lease.parts > 0 || lease.passedBytes !== lease.filledBytes) return;
  leases.delete(part.buffer);
  if (part.buffer instanceof SharedArrayBuffer && free.length < MOST_FREE) free.push(part.buffer);
}
