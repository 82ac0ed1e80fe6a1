import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ExpectationFacts, findOverdue, judge, mergeFacts } from "../../../src/mailbox/expected.ts";
import type { Expectation } from "../../../src/model/mailbox.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = 2 ** 30;

/** `*@bank.example` on workdays by 06:00 in Berlin. */
const rule: Expectation = {
  sender: "*@bank.example",
  by: { zone: "Europe/Berlin", days: [0, 1, 2, 3, 4], timeMs: 6 * HOUR_MS },
  withinMs: undefined,
  described: "*@bank.example by 06:00 mon-fri",
};

/** March 2026 in Berlin; Monday is the 2nd. */
const on = (day: number, time: string) =>
  Date.parse(`2026-03-${String(day).padStart(2, "0")}T${time}:00+01:00`);
const NOTHING: ExpectationFacts = { sinceMs: 0, arrivedMs: 0, missedMs: 0, clearedMs: 0 };

describe("an expected transfer", () => {
  test.each([
    ["that came in time", on(3, "05:00"), on(3, "09:00"), undefined],
    ["that came the day before, after the deadline", on(2, "07:00"), on(3, "09:00"), undefined],
    ["that came only for the deadline before", on(2, "05:59"), on(3, "09:00"), on(3, "06:00")],
    ["that came at the deadline before", on(2, "06:00"), on(3, "09:00"), on(3, "06:00")],
    ["that came late", on(3, "08:00"), on(3, "09:00"), undefined],
    ["that may still come", on(2, "05:00"), on(3, "05:59"), undefined],
    ["of Monday that came on Saturday", on(7, "12:00"), on(9, "09:00"), undefined],
    ["of Monday that came on Friday for Friday", on(6, "05:00"), on(9, "09:00"), on(9, "06:00")],
    ["of Friday, on Sunday", on(5, "05:00"), on(8, "12:00"), on(6, "06:00")],
  ])("%s", (_, arrivedMs, nowMs, overdue) => {
    expect(findOverdue(rule, { ...NOTHING, arrivedMs }, nowMs)).toBe(overdue);
  });

  test("must come within its time, where one is set", () => {
    const strict = { ...rule, withinMs: 12 * HOUR_MS };
    const late = { ...NOTHING, arrivedMs: on(2, "07:00") };
    expect(findOverdue(strict, late, on(2, "09:00"))).toBeUndefined();
    expect(findOverdue(strict, late, on(3, "09:00"))).toBe(on(3, "06:00"));
    expect(findOverdue(strict, { ...NOTHING, arrivedMs: on(2, "19:00") }, on(3, "09:00"))).toBeUndefined();
  });

  test("is not missed where it may have come before anybody expected it", () => {
    const facts = { ...NOTHING, sinceMs: on(3, "05:00") };
    expect(findOverdue(rule, facts, on(3, "09:00"))).toBeUndefined();
    expect(findOverdue(rule, facts, on(4, "05:59"))).toBeUndefined();
    expect(findOverdue(rule, facts, on(4, "06:00"))).toBe(on(4, "06:00"));
  });

  test("keeps to the clocks when they are changed", () => {
    const sunday = { ...rule, by: { ...rule.by, days: [6] } };
    expect(findOverdue(sunday, NOTHING, Date.parse("2026-03-29T04:00Z"))).toBe(
      Date.parse("2026-03-29T04:00Z"),
    );
  });
});

test("what is reported is both where one came late and the next did not come", () => {
  const facts = { ...NOTHING, arrivedMs: on(3, "05:00"), missedMs: on(2, "06:00") };
  expect(judge(rule, facts, on(4, "06:00"))).toMatchObject({
    cleared: on(2, "06:00"),
    missed: on(4, "06:00"),
  });
});

test("what is reported never is the same twice, whatever comes and when", () => {
  const minutes = fc.array(fc.tuple(fc.integer({ min: 1, max: 3_000 }), fc.boolean()), { maxLength: 30 });
  fc.assert(
    fc.property(minutes, (steps) => {
      let [nowMs, facts] = [on(1, "00:00"), { ...NOTHING, sinceMs: on(1, "00:00") }];
      const verdicts = steps.map(([step, isArrival]) => {
        nowMs += step * 60_000;
        const verdict = judge(rule, isArrival ? { ...facts, arrivedMs: nowMs } : facts, nowMs);
        facts = verdict.facts;
        if (isArrival) expect(facts.missedMs).toBe(facts.clearedMs);
        expect(findOverdue(rule, facts, nowMs) ?? 0).toBeLessThanOrEqual(facts.missedMs);
        return verdict;
      });
      const missed = verdicts.map((verdict) => verdict.missed).filter((due) => due !== undefined);
      const cleared = verdicts.map((verdict) => verdict.cleared).filter((due) => due !== undefined);
      expect(new Set(missed).size).toBe(missed.length);
      expect(cleared.filter((due) => !missed.includes(due))).toEqual([]);
      expect(new Set(cleared).size).toBe(cleared.length);
    }),
  );
});

test("what two know is put together the same way by both, and not changed by doing it again", () => {
  const facts = fc.record({
    sinceMs: fc.nat(),
    arrivedMs: fc.nat(),
    missedMs: fc.nat(),
    clearedMs: fc.nat(),
  });
  fc.assert(
    fc.property(facts, facts, (a, b) => {
      const both = mergeFacts(a, b, NOW_MS);
      expect(mergeFacts(b, a, NOW_MS)).toEqual(both);
      expect(mergeFacts(both, a, NOW_MS)).toEqual(both);
    }),
  );
});
