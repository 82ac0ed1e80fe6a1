/** When a message is due: gathering, digests and quiet hours. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isWithin, makeTimetable } from "../../../src/base/timetable.ts";
import type { Notice } from "../../../src/notify/notices.ts";
import { NEVER_SENT, type SentTimes, scheduleAt } from "../../../src/notify/schedule.ts";
import { ChannelState } from "../../../src/notify/state.ts";

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
type Times = typeof TIMES | typeof NIGHTS;
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

  test("a clock that went back holds nothing back", () => {
    const sent = { lastSentMs: NOON_MS + 100 * HOUR_MS, lastUrgentMs: 0 };
    expect(dueMs(TIMES, sent, [notice(NOON_MS)], NOON_MS)).toBe(NOON_MS + 30_000);
  });

  test("clocks of several processes may differ", () => {
    const sent = { lastSentMs: NOON_MS + 1_000, lastUrgentMs: 0 };
    expect(dueMs(TIMES, sent, [notice(NOON_MS)], NOON_MS)).toBe(NOON_MS + 901_000);
  });
});

describe("in quiet hours", () => {
  test("a message waits until they end", () => {
    expect(dueMs(NIGHTS, NEVER_SENT, [notice(EVENING_MS)], EVENING_MS)).toBe(MORNING_MS);
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
    expect(dueMs(NIGHTS, NEVER_SENT, [{ ...disk, isOver: true }], EVENING_MS)).toBe(MORNING_MS);
  });

  test("a transfer that expires in them does not wait for a digest that they would delay", () => {
    const justBefore = MONDAY_MS + 18 * HOUR_MS - 600_000;
    const sent = { lastSentMs: justBefore - 60_000, lastUrgentMs: 0 };
    const expiring = { ...notice(justBefore), expires: new Date(MORNING_MS - 1).toISOString() };
    expect(dueMs(NIGHTS, sent, [expiring], justBefore)).toBe(justBefore + 30_000);
  });

  test("a transfer that has expired already waits", () => {
    const gone = { ...notice(EVENING_MS), expires: new Date(EVENING_MS - 1).toISOString() };
    expect(dueMs(NIGHTS, NEVER_SENT, [gone], EVENING_MS)).toBe(MORNING_MS);
  });
});

const anyNotice = fc.record({
  kind: fc.constantFrom("password", "disk", "gone", "expiring"),
  atMs: fc.nat(2 * HOUR_MS),
  expiresInMs: fc.option(fc.integer({ min: -HOUR_MS, max: 40 * HOUR_MS }), { nil: undefined }),
  isOver: fc.boolean(),
});
const anyChannel = fc.record({
  nowMs: fc.integer({ min: MONDAY_MS, max: MONDAY_MS + 14 * 24 * HOUR_MS }),
  isQuiet: fc.boolean(),
  /** Also in the future: a clock may go back. */
  lastSentAgoMs: fc.integer({ min: -30 * HOUR_MS, max: HOUR_MS }),
  lastUrgentAgoMs: fc.integer({ min: -30 * HOUR_MS, max: HOUR_MS }),
  notices: fc.array(anyNotice, { minLength: 1, maxLength: 6 }),
  /** Notices of one kind without details, as they remain if the detailed ones are settled. */
  countedKind: fc.constantFrom(undefined, "password", "disk"),
});

test("whatever is pending: a due message has content, it respects quiet hours, and all of it is sent in time", () => {
  const check = fc.property(anyChannel, ({ nowMs, isQuiet, notices, countedKind, ...ago }) => {
    const times = isQuiet ? NIGHTS : TIMES;
    let sent = { lastSentMs: nowMs - ago.lastSentAgoMs, lastUrgentMs: nowMs - ago.lastUrgentAgoMs };
    const pending = pendingOf(notices, countedKind, nowMs);
    for (let [atMs, messages] = [nowMs, 0]; pending.pending().length > 0; messages++) {
      expect(messages).toBeLessThanOrEqual(2 * (notices.length + 1));
      atMs = waitUntilDue(times, sent, pending, atMs);
      const schedule = scheduleAt(atMs, times, sent);
      const batch = pending.pending().filter((it) => it.atMs <= atMs && schedule.isAllowed(it));
      expect(batch).not.toEqual([]);
      for (const it of batch) {
        expect(schedule.isUrgent(it) || !isQuiet || !isWithin(NIGHTS.quiet, atMs)).toBe(true);
        expectInTime(it, atMs, nowMs);
      }
      const isUrgent = batch.some((it) => schedule.isUrgent(it));
      sent = { lastSentMs: atMs, lastUrgentMs: isUrgent ? atMs : sent.lastUrgentMs };
      pending.report(batch);
    }
  });
  fc.assert(check, { numRuns: 2_000 });
});

/** Looks again at each time that was due. A notice that expires meanwhile is no longer urgent: it waits for the digest. */
function waitUntilDue(times: Times, sent: SentTimes, pending: ChannelState, nowMs: number): number {
  let atMs = nowMs;
  for (let looks = 0; looks < 8; looks++) {
    const due = dueMs(times, sent, pending.pending(), atMs) ?? Number.POSITIVE_INFINITY;
    if (due <= atMs) return atMs;
    atMs = due;
  }
  throw new Error("no message is ever due");
}

/** A transfer whose notice could be sent before it expires. */
function expectInTime({ atMs, expires, isOver }: Notice, sentMs: number, nowMs: number): void {
  const expiresMs = Date.parse(expires ?? "");
  const hasTime = expiresMs - Math.max(atMs, nowMs) > TIMES.gatherMs + 2 * TIMES.everyMs;
  if (hasTime && !isOver) expect(sentMs).toBeLessThanOrEqual(expiresMs);
}

function dueMs(times: Times, sent: SentTimes, notices: readonly Notice[], nowMs: number) {
  return scheduleAt(nowMs, times, sent).dueMs(notices);
}

function pendingOf(
  notices: readonly {
    readonly kind: Notice["kind"];
    readonly atMs: number;
    readonly expiresInMs: number | undefined;
    readonly isOver: boolean;
  }[],
  countedKind: Notice["kind"] | undefined,
  nowMs: number,
): ChannelState {
  const detailed = notices.map(({ kind, atMs, expiresInMs, isOver }, at) => ({
    kind,
    key: `k${at}`,
    atMs: nowMs - HOUR_MS + atMs,
    expires: expiresInMs === undefined ? undefined : new Date(nowMs + expiresInMs).toISOString(),
    isOver,
  }));
  const counted = ["c1", "c2"].flatMap((key) =>
    countedKind === undefined ? [] : [{ kind: countedKind, key, atMs: 0 }],
  );
  const state = new ChannelState();
  state.apply({ atMs: nowMs, end: [], begin: [...detailed, ...counted] });
  return state;
}

function notice(atMs: number): Notice {
  return { kind: "password", key: "k", atMs };
}
