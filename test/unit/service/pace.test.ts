import { expect, test } from "vitest";
import { guardPace } from "../../../src/service/pace.ts";

const MINUTE_MS = 60_000;

/** A service that takes so long for each chunk, and somebody who takes so long to be done with one. */
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

test("a download that trickles for two minutes is given up", async () => {
  await expect(read(10, 1024, MINUTE_MS, 0)).rejects.toMatchObject({ code: "SERVICE_TIMEOUT" });
});

test("one that is slow, but moves, is not", async () => {
  expect(await read(10, 61 * 1024, MINUTE_MS, 0)).toBe(610 * 1024);
});

test("one that we hold back ourselves is not, however long", async () => {
  expect(await read(100, 10, 1, 10 * MINUTE_MS)).toBe(1_000);
});

test("holding back does not hide a service that trickles", async () => {
  await expect(read(10, 1024, MINUTE_MS, 10 * MINUTE_MS)).rejects.toMatchObject({ code: "SERVICE_TIMEOUT" });
});
