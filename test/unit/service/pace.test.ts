import { expect, test } from "vitest";
import { guardPace } from "../../../src/service/downloads.ts";

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

test("a download that is too slow for two minutes fails", async () => {
  await expect(read(10, 1024, MINUTE_MS, 0)).rejects.toMatchObject({ code: "SERVICE_TIMEOUT" });
});

test("a slow download that makes progress does not fail", async () => {
  expect(await read(10, 61 * 1024, MINUTE_MS, 0)).toBe(610 * 1024);
});

test("a download that the reader holds back does not fail", async () => {
  expect(await read(100, 10, 1, 10 * MINUTE_MS)).toBe(1_000);
});

test("a slow reader does not hide a service that is too slow", async () => {
  await expect(read(10, 1024, MINUTE_MS, 10 * MINUTE_MS)).rejects.toMatchObject({ code: "SERVICE_TIMEOUT" });
});
