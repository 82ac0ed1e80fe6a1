/** When a message is due: gathering, digests and quiet hours. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { makeTimetable } from "../../../src/base/timetable.ts";
import type { Notice } from "../../../src/notify/notices.ts";
import { dueMs, isUrgent, NEVER_SENT, quietUntil } from "../../../src/notify/schedule.ts";

const HOUR_MS = 3_600_000;
/** A Monday, 00:00 UTC. */
const MONDAY_MS = Date.UTC(2026, 2, 2);
const TIMES = { quiet: undefined, gatherMs: 30_000, everyMs: 900_000, urgent: ["disk"] as const };
/** Every night from 18:00 to 07:00. */
const NIGHTS = {
  ...TIMES,
  quiet: makeTimetable(
    "UTC",
    Array.from({ length: 7 }, (_, day) => [
      { fromMs: day * 24 * HOUR_MS, untilMs: (day * 24 + 7) * HOUR_MS },
      { fromMs: (day * 24 + 18) * HOUR_MS, untilMs: (day * 24 + 24) * HOUR_MS },
    ]).flat(),
  ),
};
const NOON_MS = MONDAY_MS + 12 * HOUR_MS;
const EVENING_MS = MONDAY_MS + 20 * HOUR_MS;
const MORNING_MS = MONDAY_MS + 31 * HOUR_MS;

describe("without quiet hours", () => {
  test("the first message follows after gathering, the next after `every`", () => {
    expect(dueMs(TIMES, NEVER_SENT, [], NOON_MS)).toBeUndefined();
    expect(dueMs(TIMES, NEVER_SENT, [notice(NOON_MS)], NOON_MS)).toBe(NOON_MS + 30_000);
    const sent = { lastSentMs: NOON_MS, lastUrgentMs: 0 };
    expect(dueMs(TIMES, sent, [notice(NOON_MS + 1_000)], NOON_MS + 1_000)).toBe(NOON_MS + 900_000);
  });

  test("an urgent notice does not wait for `every`, but for the next urgent one", () => {
    const disk = { ...notice(NOON_MS), kind: "disk" as const };
    const sent = { lastSentMs: NOON_MS - 1_000, lastUrgentMs: 0 };
    expect(dueMs(TIMES, sent, [disk], NOON_MS)).toBe(NOON_MS + 30_000);
    const again = { lastSentMs: NOON_MS - 1_000, lastUrgentMs: NOON_MS - 1_000 };
    expect(dueMs(TIMES, again, [disk], NOON_MS)).toBe(NOON_MS - 1_000 + 900_000);
  });

  test("a clock that went back holds nothing back for longer than `every`", () => {
    const sent = { lastSentMs: NOON_MS + 100 * HOUR_MS, lastUrgentMs: 0 };
    expect(dueMs(TIMES, sent, [notice(NOON_MS)], NOON_MS)).toBe(NOON_MS + 900_000);
  });
});

describe("in quiet hours", () => {
  test("a message waits until they end", () => {
    expect(dueMs(NIGHTS, NEVER_SENT, [notice(EVENING_MS)], EVENING_MS)).toBe(MORNING_MS);
    expect(quietUntil(NIGHTS, NOON_MS)).toBeUndefined();
  });

  test("a message that would be due in them waits too", () => {
    const justBefore = MONDAY_MS + 18 * HOUR_MS - 10_000;
    expect(dueMs(NIGHTS, NEVER_SENT, [notice(justBefore)], justBefore)).toBe(MORNING_MS);
  });

  test("a full disk, and a transfer that expires before they end, do not wait", () => {
    const disk = { ...notice(EVENING_MS), kind: "disk" as const };
    expect(dueMs(NIGHTS, NEVER_SENT, [disk], EVENING_MS)).toBe(EVENING_MS + 30_000);
    const expiring = (atMs: number) => ({ ...notice(EVENING_MS), expires: new Date(atMs).toISOString() });
    expect(dueMs(NIGHTS, NEVER_SENT, [expiring(MORNING_MS - 1)], EVENING_MS)).toBe(EVENING_MS + 30_000);
    expect(dueMs(NIGHTS, NEVER_SENT, [expiring(MORNING_MS + 1)], EVENING_MS)).toBe(MORNING_MS);
    expect(isUrgent(NIGHTS, { ...disk, isOver: true }, MORNING_MS)).toBe(false);
  });
});

test("a message is never due in quiet hours, unless it is urgent, and never before it may be sent", () => {
  const times = fc.record({
    nowMs: fc.integer({ min: MONDAY_MS, max: MONDAY_MS + 14 * 24 * HOUR_MS }),
    agoMs: fc.nat(HOUR_MS),
    lastAgoMs: fc.nat(HOUR_MS),
  });
  fc.assert(
    fc.property(times, ({ nowMs, agoMs, lastAgoMs }) => {
      const sent = { lastSentMs: nowMs - lastAgoMs, lastUrgentMs: 0 };
      const due = dueMs(NIGHTS, sent, [notice(nowMs - agoMs)], nowMs) ?? 0;
      expect(due).toBeGreaterThanOrEqual(nowMs - agoMs + NIGHTS.gatherMs);
      expect(due).toBeGreaterThanOrEqual(sent.lastSentMs + NIGHTS.everyMs);
      expect(quietUntil(NIGHTS, Math.max(due, nowMs))).toBeUndefined();
    }),
  );
});

function notice(atMs: number): Notice {
  return { kind: "password", key: "k", atMs };
}
