/** When a message is due: gathering, digests and quiet hours. */
import fc from "fast-check";
import { expect, test } from "vitest";
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

const NOON = notice(NOON_MS);
const EVENING = notice(EVENING_MS);
const DISK: Notice = { ...NOON, kind: "disk" };
const DISK_AT_NIGHT: Notice = { ...EVENING, kind: "disk" };
/** Ten minutes before quiet hours. */
const LATE_MS = MONDAY_MS + 17 * HOUR_MS + 50 * 60_000;
const LATE = notice(LATE_MS);
/** Its transfer expires just before they end. */
const expiring = (it: Notice, expiresMs = MORNING_MS - 1) => ({
  ...it,
  expires: new Date(expiresMs).toISOString(),
});
const sentAt = (lastSentMs: number, lastUrgentMs = 0): SentTimes => ({ lastSentMs, lastUrgentMs });

test.each<[string, Times, Notice, number, SentTimes?]>([
  ["the first message follows after gathering", TIMES, NOON, NOON_MS + 30_000],
  ["the next one follows after `every`", TIMES, NOON, NOON_MS - 1 + 900_000, sentAt(NOON_MS - 1)],
  ["a full disk does not wait for `every`", TIMES, DISK, NOON_MS + 30_000, sentAt(NOON_MS)],
  ["a full disk waits for it after another", TIMES, DISK, NOON_MS + 900_000, sentAt(NOON_MS, NOON_MS)],
  ["a clock went back", TIMES, NOON, NOON_MS + 30_000, sentAt(NOON_MS + 100 * HOUR_MS)],
  ["clocks of processes differ", TIMES, NOON, NOON_MS + 901_000, sentAt(NOON_MS + 1_000)],
  ["a message waits in quiet hours", NIGHTS, EVENING, MORNING_MS],
  ["a message that would be due in quiet hours", NIGHTS, notice(LATE_MS + 590_000), MORNING_MS],
  ["a full disk in quiet hours", NIGHTS, DISK_AT_NIGHT, EVENING_MS + 30_000],
  ["its end in quiet hours", NIGHTS, { ...DISK_AT_NIGHT, isOver: true }, MORNING_MS],
  ["a transfer expires in quiet hours", NIGHTS, expiring(EVENING), EVENING_MS + 30_000],
  ["a transfer expires after them", NIGHTS, expiring(EVENING, MORNING_MS + 1), MORNING_MS],
  ["a transfer has expired", NIGHTS, expiring(EVENING, EVENING_MS - 1), MORNING_MS],
  ["quiet hours would delay its digest", NIGHTS, expiring(LATE), LATE_MS + 30_000, sentAt(LATE_MS - 60_000)],
])("when a message is due: %s", (_, times, pending, due, sent = NEVER_SENT) => {
  expect(dueMs(times, sent, [pending], pending.atMs)).toBe(due);
  expect(dueMs(times, sent, [], pending.atMs)).toBeUndefined();
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
  fc.assert(check, { numRuns: 1_000 });
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
