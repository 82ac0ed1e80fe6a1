import type { Dispatcher } from "undici";
import { expect, test } from "vitest";
import { Block } from "../../../src/base/blocks.ts";
import { receive } from "../../../src/service/receiving.ts";

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
