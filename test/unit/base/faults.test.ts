/** What a fault asks for, and how an outage is reported. */
import { expect, test } from "vitest";
import { describeFault, Fault } from "../../../src/base/faults.ts";
import { Outage } from "../../../src/base/outage.ts";

test("an outage is reported once when it begins, and once when the last key has recovered", () => {
  const { outage, reported, passMs } = setUp();
  const fault = new Fault("DISK_FULL", { detail: "one" });
  outage.clear("a");
  outage.add("a", fault);
  passMs(5);
  outage.add("b", fault);
  outage.add("a", fault);
  outage.clear("a");
  outage.clear("a");
  passMs(15);
  outage.clear("b");
  expect(reported).toEqual(["began: DISK_FULL one", "ended: 20 ms"]);
  outage.add("c", fault);
  outage.clear("c");
  expect(reported.slice(2)).toEqual(["began: DISK_FULL one", "ended: 0 ms"]);
});

test("the fault of the key that is affected longest is shown, and every change of it is reported", () => {
  const { outage, reported } = setUp();
  const full = (detail: string) => new Fault("DISK_FULL", { detail });
  outage.add("a", new Fault("DISK_UNMOUNTED", { detail: "one" }));
  for (const detail of ["one", "other", "other", "one"]) outage.add("b", full(detail));
  outage.add("a", new Fault("DISK_REPLACED", { detail: "one" }));
  outage.clear("a");
  for (const detail of ["one", "other", "other"]) outage.add("b", full(detail));
  outage.clear("b");
  expect(reported).toEqual([
    "began: DISK_UNMOUNTED one",
    "began: DISK_REPLACED one",
    "began: DISK_FULL one",
    "changed: DISK_FULL other",
    "ended: 0 ms",
  ]);
});

function setUp() {
  const reported: string[] = [];
  const report = (what: string) => (fault: Fault) =>
    void reported.push(`${what}: ${fault.code} ${fault.message.split(": ").at(-1)}`);
  let nowMs = 0;
  const ended = (lastedMs: number) => void reported.push(`ended: ${lastedMs} ms`);
  const events = { began: report("began"), changed: report("changed"), ended };
  const outage = new Outage({ now: () => nowMs }, events);
  const passMs = (ms: number) => {
    nowMs += ms;
  };
  return { outage, reported, passMs };
}

test("a fault asks to wait only where an answer asked for it", () => {
  const describe = (answeredBy: "service" | "intermediary" | "none" | "unsent") =>
    describeFault(new Fault("TRANSFER_LOCKED", { answeredBy, retryAfterMs: 90_000 }));
  for (const answeredBy of ["service", "intermediary"] as const) {
    expect(describe(answeredBy)).toContain("It asks to wait 90 s.");
  }
  // A lock that another mailbox has found is remembered here: no request was sent.
  for (const answeredBy of ["unsent", "none"] as const) {
    expect(describe(answeredBy)).not.toContain("It asks to wait");
  }
});
