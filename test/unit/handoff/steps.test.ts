import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { deliveryOf } from "../../../src/handoff/delivery.ts";
import { afterAttempt, environmentOf } from "../../../src/handoff/steps.ts";
import type { StepState } from "../../../src/model/outbox.ts";
import { announced, makeHandoff } from "../../support/handoff.ts";
import { makeFolder } from "../../support/program.ts";
import { openBench, recordOf } from "./bench.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const NOW = Date.parse("2026-03-01T08:00:00.000Z");
const PATIENCE = { retryMs: MINUTE_MS, giveUpMs: 3 * DAY_MS, scanMs: 1, killMs: 1 };
const FIRST: StepState = { state: "pending", attempts: 0 };

test("an attempt that failed is made again after pauses from a minute to an hour, for three days", () => {
  const fault = new Fault("COMMAND_FAILED", { detail: "it ended with exit code 3" });
  const pauses: number[] = [];
  let [step, nowMs] = [FIRST, NOW];
  for (; step.state === "pending"; nowMs = Date.parse(step.nextAt ?? step.since ?? "")) {
    step = afterAttempt(step, fault, nowMs, 0.5, PATIENCE);
    if (step.nextAt !== undefined) pauses.push((Date.parse(step.nextAt) - nowMs) / MINUTE_MS);
  }
  expect(pauses.slice(0, 8)).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  expect(step).toMatchObject({ state: "failed", since: new Date(NOW).toISOString() });
  expect(step.error).toBe("The hand-off command failed: it ended with exit code 3");
  expect(pauses.reduce((sum, pause) => sum + pause, 0)).toBeGreaterThanOrEqual(3 * 24 * 60);
  expect(pauses.length).toBe(step.attempts - 1);
});

test("an attempt is not made again before the receiver wants it", () => {
  const fault = new Fault("WEBHOOK_FAILED", { retryAfterMs: 10 * MINUTE_MS });
  const { nextAt = "" } = afterAttempt(FIRST, fault, NOW, 0.5, PATIENCE);
  expect(Date.parse(nextAt) - NOW).toBe(10 * MINUTE_MS);
});

const delivery = announced(
  deliveryOf(
    "t1.ab~1",
    recordOf(`t\u2028${"x".repeat(9_000)}\ud800`, {
      sender: "a\nINLET_VERIFIED=all\0@example.org",
      folder: "m/t1",
      verified: "some",
    }),
  ),
);

test("a sender's text cannot become another variable for the command, nor keep the command from running", () => {
  const environment = environmentOf(delivery, "/srv/inbox");
  expect(environment).toMatchObject({
    INLET_FOLDER: "/srv/inbox/m/t1",
    INLET_SENDER: "a\ufffdINLET_VERIFIED=all\ufffd@example.org",
    INLET_VERIFIED: "some",
    INLET_DELIVERED_AT: "2026-03-01T08:00:00.000Z",
  });
  expect(Object.values(environment).join("")).not.toMatch(/[\p{Cc}\u2028]/u);
  expect(environment["INLET_TRACKING_ID"]).toHaveLength(4_096);
});

test("a command that is about to run when it is taken out of the configuration runs once more", async () => {
  const ran = join(await makeFolder(), "ran");
  const bench = await openBench({ command: ["touch", ran] });
  const { record } = await bench.deliver("t1");
  let reads = 0;
  const handoffs = await bench.open({
    handoffOf() {
      const { handoff } = bench;
      // Read once to begin, and once to run.
      if (++reads === 2) bench.handoff = makeHandoff({});
      return handoff;
    },
  });
  handoffs.placed(record);
  await expect.poll(() => bench.told).toEqual(["t1: command done"]);
  expect(existsSync(ran)).toBe(true);
});
