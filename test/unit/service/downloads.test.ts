/** How fast a download has to be, and the memory of its chunks. */

import type { Dispatcher } from "undici";
import { expect, test } from "vitest";
import { Block } from "../../../src/base/blocks.ts";
import type { Fault } from "../../../src/base/faults.ts";
import { guardPace } from "../../../src/service/downloads.ts";
import { receive } from "../../../src/service/receiving.ts";

const MINUTE_MS = 60_000;

/** `serviceMs`: the service's time for each chunk. `readerMs`: the reader's time. */
async function read(chunks: number, bytes: number, serviceMs: number, readerMs: number): Promise<number> {
  let nowMs = 0;
  async function* body() {
    for (let at = 0; at < chunks; at++) {
      nowMs += serviceMs;
      yield Buffer.alloc(bytes);
    }
  }
  let total = 0;
  for await (const chunk of guardPace(body(), () => nowMs)) {
    total += chunk.byteLength;
    nowMs += readerMs;
  }
  return total;
}

test.each([
  ["is too slow for two minutes fails", 10, 1024, MINUTE_MS, 0, "SERVICE_TIMEOUT"],
  ["makes progress does not fail", 10, 61 * 1024, MINUTE_MS, 0, 610 * 1024],
  ["the reader holds back does not fail", 100, 10, 1, 10 * MINUTE_MS, 1_000],
  ["is too slow fails, however slow the reader is", 10, 1024, MINUTE_MS, 10 * MINUTE_MS, "SERVICE_TIMEOUT"],
])("a download that %s", async (_name, chunks, bytes, serviceMs, readerMs, result) => {
  const total = await read(chunks, bytes, serviceMs, readerMs).catch((fault: Fault) => fault.code);
  expect(total).toBe(result);
});

test("small pieces arrive as one chunk, and their memory is reused", async () => {
  const block = new Block(true);
  const { buffer } = block.free;
  const pieces = [3, 5].map((bytes) => {
    block.free.fill(bytes, 0, bytes);
    block.fill(bytes);
    return block.takeChunk();
  });
  block.close();
  const controller = { paused: false } as Dispatcher.DispatchController;
  const dispatcher = {
    dispatch(_options: unknown, handler: Dispatcher.DispatchHandler) {
      handler.onRequestStart?.(controller, {});
      handler.onResponseStart?.(controller, 200, {});
      for (const piece of pieces) handler.onResponseData?.(controller, piece);
      handler.onResponseEnd?.(controller, {});
    },
  } as unknown as Dispatcher;
  const { signal } = new AbortController();
  const request = { path: "/", method: "GET" } as const;

  const { body } = await receive(dispatcher, request, signal, () => {});
  const chunks = await Array.fromAsync(body);

  expect(chunks).toEqual([Buffer.from([3, 3, 3, 5, 5, 5, 5, 5])]);
  expect(new Block(true).free.buffer === buffer).toBe(true);
});
