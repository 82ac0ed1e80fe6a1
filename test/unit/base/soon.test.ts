import { expect, test } from "vitest";
import { Soon } from "../../../src/base/soon.ts";

test("work that several callers ask for is done once for all of them", async () => {
  let done = 0;
  const soon = new Soon(async () => void done++, 1);
  soon.ask();
  soon.ask();
  await expect.poll(() => done).toBe(1);
  soon.ask();
  await expect.poll(() => done).toBe(2);
});

test("work is never done twice at the same time, and what comes meanwhile is done afterwards", async () => {
  const steps: string[] = [];
  const first = Promise.withResolvers<void>();
  const soon = new Soon(async () => {
    steps.push("begins");
    if (steps.length === 1) await first.promise;
    steps.push("ends");
  }, 1);
  const running = soon.doNow();
  const next = soon.doNow();
  await Promise.resolve();
  first.resolve();
  await running;
  expect(steps.slice(0, 2)).toEqual(["begins", "ends"]);
  await next;
  expect(steps).toEqual(["begins", "ends", "begins", "ends"]);
});

test("work that is done now is not done again later", async () => {
  let done = 0;
  const soon = new Soon(async () => void done++, 5);
  soon.ask();
  await soon.doNow();
  await new Promise((resolve) => setTimeout(resolve, 50));
  await soon.idle();
  expect(done).toBe(1);
});
