import { expect, test } from "vitest";
import { Runs } from "../../../src/queue/slots.ts";

test("a job counts as deferred only if it found no free slot, even just after a start", () => {
  const runs = new Runs(
    () => 1,
    () => new Map([["m", "service"]]),
  );
  expect(runs.isDeferred("a")).toBe(false);
  const run = runs.begin("a", "m");
  expect(runs.begin("b", "m")).toBeUndefined();
  expect(runs.defer("b")).toBeGreaterThan(0);
  expect([runs.isDeferred("a"), runs.isDeferred("b"), runs.countDeferred()]).toEqual([false, true, 1]);
  if (run !== undefined) runs.end(run);
  runs.begin("b", "m");
  expect([runs.isDeferred("b"), runs.countDeferred()]).toEqual([false, 0]);
});
