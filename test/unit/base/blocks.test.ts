import { expect, test } from "vitest";
import { Block, returnChunk } from "../../../src/base/blocks.ts";

test("a large block is reused after it is closed and all of its chunks were returned", () => {
  const { block, buffer, first, second } = takeTwo();
  returnChunk(first);
  block.close();
  expect(new Block(true).free.buffer).not.toBe(buffer);
  returnChunk(second);
  expect(new Block(true).free.buffer).toBe(buffer);
});

test("is not reused after a part of a chunk, or one chunk twice, was returned", () => {
  const { block, buffer, first, second } = takeTwo();
  block.close();
  returnChunk(first);
  returnChunk(first);
  returnChunk(second.subarray(0, 49));
  returnChunk(second.subarray(1));
  expect(new Block(true).free.buffer).not.toBe(buffer);
});

test("a reused block is returned once", () => {
  const before = new Block(true);
  before.fill(100);
  const chunk = before.takeChunk();
  before.close();
  returnChunk(chunk);
  const block = new Block(true);
  block.fill(100);
  block.takeChunk();
  block.close();
  expect(block.free.buffer).toBe(chunk.buffer);
  // Its earlier reader does it again, by mistake.
  before.returnChunk(chunk);
  expect(new Block(true).free.buffer).not.toBe(chunk.buffer);
});

function takeTwo() {
  const block = new Block(true);
  const { buffer } = block.free;
  block.fill(100);
  const first = block.takeChunk();
  block.fill(50);
  return { block, buffer, first, second: block.takeChunk() };
}
