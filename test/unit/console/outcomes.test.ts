import { expect, test } from "vitest";
import { Outcomes, summarize } from "../../../src/console/outcomes.ts";

const BY = { who: "anna", from: "192.0.2.1" };
const PENDING = { status: 200, result: "pending", text: "In progress." } as const;
const key = (trackingId: string) => ({ mailbox: "m", trackingId });

test("the last action on a transfer is shown for a while, and a click on many is summed up", () => {
  let nowMs = 0;
  let changes = 0;
  const outcomes = new Outcomes({ now: () => nowMs }, () => void changes++);
  const note = outcomes.begin("retry", BY);
  for (const id of ["a", "b", "c"]) note({ ...key(id), ...PENDING });
  expect(outcomes.of(key("a"))).toMatchObject({ action: "retry", by: BY, result: "pending" });
  expect(outcomes.of(key("x"))).toBeUndefined();
  note({ ...key("a"), status: 200, result: "fine", text: "a was delivered." });
  note({ ...key("b"), status: 200, result: "attention", text: "b waits." });
  const [batch] = outcomes.recent();
  expect(batch && summarize(batch)).toBe("1 done, 1 needs attention, 1 in progress");
  nowMs = 60_000;
  outcomes.begin("discard", BY)({ ...key("b"), ...PENDING });
  expect(outcomes.of(key("b"))).toMatchObject({ action: "discard", result: "pending" });
  expect(changes).toBe(6);
  nowMs = 20 * 60_000;
  expect(outcomes.recent()).toEqual([]);
});

test("I8 bounded: many clicks do not fill the memory", () => {
  const outcomes = new Outcomes({ now: () => 0 }, () => {});
  for (let at = 0; at < 1_000; at++) outcomes.begin("retry", BY)({ ...key(`${at}`), ...PENDING });
  expect(outcomes.recent()).toHaveLength(50);
});
