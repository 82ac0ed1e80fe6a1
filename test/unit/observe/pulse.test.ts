import { expect, test } from "vitest";
import { downloadOf, Pulse } from "../../../src/observe/pulse.ts";
import { makeRecord } from "../../support/record.ts";

const MINUTE_MS = 60_000;

test("names work without progress for half an hour, and nothing else", async () => {
  let nowMs = 0;
  const pulse = new Pulse(() => nowMs);
  const { promise, resolve } = Promise.withResolvers<void>();
  const lively = pulse.during(downloadOf(makeRecord({ trackingId: "lively" })), () => promise);
  const silent = pulse.during(downloadOf(makeRecord({ trackingId: "silent" })), () => promise);
  for (; nowMs <= 30 * MINUTE_MS; nowMs += MINUTE_MS) {
    pulse.listener({ type: "transfer-changed", record: makeRecord({ trackingId: "lively" }) });
    pulse.listener({ type: "transfer-changed", record: makeRecord({ trackingId: "other" }) });
    expect(pulse.stuck()).toBe(undefined);
  }
  expect(pulse.stuck()).toBe(downloadOf(makeRecord({ trackingId: "silent" })));
  pulse.listener({ type: "transfer-changed", record: makeRecord({ trackingId: "silent" }) });
  expect(pulse.stuck()).toBe(undefined);
  resolve();
  await Promise.all([lively, silent]);
  nowMs += 60 * MINUTE_MS;
  expect(pulse.stuck()).toBe(undefined);
});

test("leaves a running check to its own time limit", async () => {
  let nowMs = 0;
  const pulse = new Pulse(() => nowMs);
  const { promise, resolve } = Promise.withResolvers<void>();
  const record = makeRecord({ state: "checking" });
  const work = pulse.during(downloadOf(record), () => promise);
  pulse.listener({ type: "transfer-changed", record });
  nowMs = 600 * MINUTE_MS;
  expect(pulse.stuck()).toBe(undefined);
  pulse.listener({ type: "transfer-changed", record: makeRecord({ state: "delivering" }) });
  nowMs += 31 * MINUTE_MS;
  expect(pulse.stuck()).toBe(downloadOf(record));
  resolve();
  await work;
});

test("forgets work that failed", async () => {
  let nowMs = 0;
  const pulse = new Pulse(() => nowMs);
  await expect(pulse.during("it", () => Promise.reject(new Error("fails")))).rejects.toThrow("fails");
  nowMs = 60 * MINUTE_MS;
  expect(pulse.stuck()).toBe(undefined);
});
