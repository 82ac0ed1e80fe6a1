import { expect, test } from "vitest";
import { Runs } from "../../../src/queue/bullmq-runs.ts";

test("a job was put off only where it found no slot, however young the process is", () => {
  const runs = new Runs(1, () => new Map([["m", "service"]]));
  expect(runs.isPutOff("a")).toBe(false);
  const run = runs.begin("a", "m");
  expect(runs.begin("b", "m")).toBeUndefined();
  expect(runs.putOff("b")).toBeGreaterThan(0);
  expect([runs.isPutOff("a"), runs.isPutOff("b"), runs.countPutOff()]).toEqual([false, true, 1]);
  if (run !== undefined) runs.end(run);
  runs.begin("b", "m");
  expect([runs.isPutOff("b"), runs.countPutOff()]).toEqual([false, 0]);
});
