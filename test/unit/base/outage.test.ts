import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { Outage } from "../../../src/base/outage.ts";

test("an outage is reported once when it begins, and once when the last key has recovered", () => {
  const reported: string[] = [];
  let nowMs = 0;
  const outage = new Outage(
    { now: () => nowMs },
    {
      began: (fault) => void reported.push(`began: ${fault.code}`),
      ended: (lastedMs) => void reported.push(`ended: ${lastedMs} ms`),
    },
  );
  const fault = new Fault("DISK_FULL");
  outage.clear("a");
  outage.add("a", fault);
  nowMs = 5;
  outage.add("b", fault);
  outage.add("a", fault);
  outage.clear("a");
  outage.clear("a");
  nowMs = 20;
  outage.clear("b");
  expect(reported).toEqual(["began: DISK_FULL", "ended: 20 ms"]);
  outage.add("c", fault);
  outage.clear("c");
  expect(reported.slice(2)).toEqual(["began: DISK_FULL", "ended: 0 ms"]);
});

test("the fault of the key that is affected longest is shown, and a change of it is reported", () => {
  const reported: string[] = [];
  const outage = new Outage(
    { now: () => 0 },
    {
      began: (fault) => void reported.push(fault.code),
      ended: () => void reported.push("ended"),
    },
  );
  outage.add("a", new Fault("DISK_UNMOUNTED"));
  outage.add("b", new Fault("DISK_FULL"));
  outage.add("a", new Fault("DISK_REPLACED"));
  outage.clear("a");
  outage.clear("b");
  expect(reported).toEqual(["DISK_UNMOUNTED", "DISK_REPLACED", "DISK_FULL", "ended"]);
});

test("another cause is reported while the outage lasts", () => {
  const reported: string[] = [];
  const outage = new Outage(
    { now: () => 0 },
    {
      began: ({ message }) => void reported.push(`began: ${message}`),
      changed: ({ message }) => void reported.push(`changed: ${message}`),
      ended: () => void reported.push("ended"),
    },
  );
  const [one, other] = ["one", "other"].map((detail) => new Fault("QUEUE_REFUSED", { detail }));
  for (const fault of [one, one, other, other, one]) if (fault !== undefined) outage.add("a", fault);
  outage.clear("a");
  expect(reported.map((line) => line.replace(/(: ).*: /, "$1"))).toEqual([
    "began: one",
    "changed: other",
    "changed: one",
    "ended",
  ]);
});
