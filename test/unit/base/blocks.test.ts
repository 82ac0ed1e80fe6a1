import { describe, expect, test } from "vitest";
import { BLOCK_BYTES, fillBlock, giveBack, passOn, takeBlock } from "../../../src/base/blocks.ts";

const known = new Set<ArrayBufferLike>();

function take(): Uint8Array {
  const block = takeBlock();
  known.add(block.buffer);
  return block;
}

/** Takes all that is free, up to a new one: so that the next block is either one that was given back since, or new. */
function takeAllFree(): void {
  let before: number;
  do {
    before = known.size;
    take();
  } while (known.size === before);
}

function filled(bytes: number): Uint8Array {
  const block = take();
  fillBlock(block, bytes);
  return block;
}

describe("a block", () => {
  test("is used again once all of it was passed on and given back", () => {
    takeAllFree();
    const block = filled(1000);
    const parts = [block.subarray(0, 400), block.subarray(400, 1000)].map(passOn);
    giveBack(parts[1] as Uint8Array);
    expect(take().buffer).not.toBe(block.buffer);
    giveBack(parts[0] as Uint8Array);
    const again = take();
    expect(again.buffer).toBe(block.buffer);
    expect(again.byteLength).toBe(BLOCK_BYTES);
  });

  test("is not used again while somebody may have a part of it", () => {
    takeAllFree();
    // Of the first 100 bytes nobody says where they went.
    const block = filled(1000);
    const rest = passOn(block.subarray(100, 1000));
    giveBack(rest);
    expect(take().buffer).not.toBe(block.buffer);
  });

  test("is not given back by a part of what was passed on", () => {
    takeAllFree();
    const block = filled(1000);
    const whole = passOn(block.subarray(0, 1000));
    giveBack(whole.subarray(0, 1000));
    giveBack(whole.subarray(0, 10));
    giveBack(block);
    expect(take().buffer).not.toBe(block.buffer);
    giveBack(whole);
    expect(take().buffer).toBe(block.buffer);
  });

  test("is nobody's a second time, however often it is given back", () => {
    takeAllFree();
    const block = filled(10);
    const part = passOn(block.subarray(0, 10));
    giveBack(part);
    giveBack(part);
    const next = take();
    giveBack(part);
    expect(next.buffer).toBe(block.buffer);
    expect(take().buffer).not.toBe(block.buffer);
  });

  test("is not what other memory becomes", () => {
    takeAllFree();
    const before = new Set(known);
    const other = new Uint8Array(BLOCK_BYTES);
    fillBlock(other, 10);
    giveBack(passOn(other));
    const next = take();
    expect(next.buffer).not.toBe(other.buffer);
    expect(before.has(next.buffer)).toBe(false);
  });

  test("is ordinary memory where too many are with somebody, or lost: such memory the garbage collector counts", () => {
    const kinds = Array.from({ length: 200 }, () => take().buffer instanceof SharedArrayBuffer);
    expect(kinds.at(0)).toBe(true);
    expect(kinds.at(-1)).toBe(false);
    const block = filled(10);
    const part = passOn(block.subarray(0, 10));
    giveBack(part);
    expect(take().buffer).not.toBe(block.buffer);
  });
});
