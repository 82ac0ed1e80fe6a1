import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { allDone } from "../../../src/base/parallel.ts";

test("where one fails, the others have ended before it is told", async () => {
  let isUnderWay = true;
  const slow = sleep(20).then(() => {
    isUnderWay = false;
  });
  const failing = Promise.reject(new Error("no room left"));

  await expect(allDone([slow, failing])).rejects.toThrow("no room left");
  expect(isUnderWay).toBe(false);
});

test("of several failures the first in the list is told", async () => {
  const later = sleep(5).then(() => Promise.reject(new Error("first in the list")));
  const sooner = Promise.reject(new Error("first in time"));

  await expect(allDone([later, sooner])).rejects.toThrow("first in the list");
});
