import { describe, expect, test } from "vitest";
import { BLOCK_BYTES, fillBlock, giveBack, passOn, takeBlock } from "../../../src/base/blocks.ts";

/** Takes all that is free, so that the next block is either one that was given back since, or new. */
function takeAllFree(): Set<ArrayBufferLike> {
  return new Set(Array.from({ length: 140 }, () => takeBlock().buffer));
}

function filled(bytes: number): Uint8Array {
  const block = takeBlock();
  fillBlock(block, bytes);
  return block;
}

describe("a block", () => {
  test("is used again once all of it was passed on and given back", () => {
    takeAllFree();
    const block = filled(1000);
    const parts = [block.subarray(0, 400), block.subarray(400, 1000)].map(passOn);
    giveBack(parts[1] as Uint8Array);
    expect(takeBlock().buffer).not.toBe(block.buffer);
    giveBack(parts[0] as Uint8Array);
    const again = takeBlock();
    expect(again.buffer).toBe(block.buffer);
    expect(again.byteLength).toBe(BLOCK_BYTES);
  });

  test("is not used again while somebody may have a part of it", () => {
    takeAllFree();
    // Of the first 100 bytes nobody says where they went.
    const block = filled(1000);
    const rest = passOn(block.subarray(100, 1000));
    giveBack(rest);
    expect(takeBlock().buffer).not.toBe(block.buffer);
  });

  test("is not given back by a part of what was passed on", () => {
    takeAllFree();
    const block = filled(1000);
    const whole = passOn(block.subarray(0, 1000));
    giveBack(whole.subarray(0, 1000));
    giveBack(whole.subarray(0, 10));
    giveBack(block);
    expect(takeBlock().buffer).not.toBe(block.buffer);
    giveBack(whole);
    expect(takeBlock().buffer).toBe(block.buffer);
  });

  test("is nobody's a second time, however often it is given back", () => {
    takeAllFree();
    const block = filled(10);
    const part = passOn(block.subarray(0, 10));
    giveBack(part);
    giveBack(part);
    const next = takeBlock();
    giveBack(part);
    expect(next.buffer).toBe(block.buffer);
    expect(takeBlock().buffer).not.toBe(block.buffer);
  });

  test("is not what other memory becomes", () => {
    const before = takeAllFree();
    const other = new Uint8Array(BLOCK_BYTES);
    fillBlock(other, 10);
    giveBack(passOn(other));
    const next = takeBlock();
    expect(next.buffer).not.toBe(other.buffer);
    expect(before.has(next.buffer)).toBe(false);
  });
});
