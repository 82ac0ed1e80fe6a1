import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { Outage } from "../../../src/base/outage.ts";

test("an outage is told once when it begins and once when the last one is past it", () => {
  const told: string[] = [];
  let nowMs = 0;
  const outage = new Outage(
    { now: () => nowMs },
    {
      began: (fault) => void told.push(`began: ${fault.code}`),
      ended: (lastedMs, met) => void told.push(`ended: ${lastedMs} ms, ${met}`),
    },
  );
  const fault = new Fault("DISK_FULL");
  outage.isPast("a");
  outage.meets("a", fault);
  nowMs = 5;
  outage.meets("b", fault);
  outage.meets("a", fault);
  outage.isPast("a");
  outage.isPast("a");
  nowMs = 20;
  outage.isPast("b");
  expect(told).toEqual(["began: DISK_FULL", "ended: 20 ms, 2"]);
  outage.meets("c", fault);
  outage.isPast("c");
  expect(told.slice(2)).toEqual(["began: DISK_FULL", "ended: 0 ms, 1"]);
});
