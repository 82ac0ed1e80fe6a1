import { expect, test } from "vitest";
import { Pulse } from "../../../src/observe/pulse.ts";

const MINUTE_MS = 60_000;

test("names what has shown no sign of life for half an hour, and only that", async () => {
  let nowMs = 0;
  const pulse = new Pulse(() => nowMs);
  const { promise, resolve } = Promise.withResolvers<void>();
  const lively = pulse.during("the lively one", () => promise);
  const silent = pulse.during("the silent one", () => promise);
  for (; nowMs <= 30 * MINUTE_MS; nowMs += MINUTE_MS) {
    pulse.beat("the lively one");
    pulse.beat("one that does not run");
    expect(pulse.stuck()).toBe(undefined);
  }
  expect(pulse.stuck()).toBe("the silent one");
  pulse.beat("the silent one");
  expect(pulse.stuck()).toBe(undefined);
  resolve();
  await Promise.all([lively, silent]);
  nowMs += 60 * MINUTE_MS;
  expect(pulse.stuck()).toBe(undefined);
});

test("hears no more of what failed", async () => {
  let nowMs = 0;
  const pulse = new Pulse(() => nowMs);
  const failing = pulse.during("the failing one", () => Promise.reject(new Error("it fails")));
  await expect(failing).rejects.toThrow("it fails");
  nowMs = 60 * MINUTE_MS;
  expect(pulse.stuck()).toBe(undefined);
});
