import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  coversWeek,
  firstInstantOf,
  isTimeZone,
  isWithin,
  lastTimeOf,
  localTimeAt,
  makeTimetable,
  nextChange,
  nextShift,
  type Timetable,
} from "../../../src/base/timetable.ts";
import { parseWindow } from "../../../src/config/times.ts";

/** Instants near the changes of clocks: changes by half an hour, at midnight or a minute later, a skipped day, interrupted summer time, odd offsets. */
const CHANGES: Readonly<Record<string, readonly string[]>> = {
  UTC: [],
  "Europe/Berlin": ["2026-03-29T01:00Z", "2026-10-25T01:00Z"],
  "America/New_York": ["2026-03-08T07:00Z", "2026-11-01T06:00Z"],
  "America/St_Johns": ["2010-03-14T03:31Z", "2010-11-07T02:31Z"],
  "America/Sao_Paulo": ["2018-11-04T03:00Z", "2019-02-17T02:00Z"],
  "Australia/Lord_Howe": ["2026-04-04T15:00Z", "2026-10-03T15:30Z"],
  "Africa/Casablanca": ["2026-02-15T02:00Z", "2026-03-22T02:00Z"],
  "Pacific/Apia": ["2011-12-30T10:00Z", "2012-03-31T14:00Z"],
  "Asia/Kathmandu": [],
  "Pacific/Chatham": ["2026-04-04T14:00Z", "2026-09-26T14:00Z"],
};

const ZONES = Object.keys(CHANGES);

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

function timetable(zone: string, ...windows: readonly string[]): Timetable {
  return makeTimetable(zone, windows.flatMap(parseWindow));
}

/** In the winter of Berlin clocks are an hour ahead. Monday was the 2nd of March. */
const BERLIN = "Europe/Berlin";

test("a timetable of the whole week, or of nothing, never changes", () => {
  const [always, never] = [timetable(BERLIN, "daily"), timetable(BERLIN)];
  expect([always, never, timetable(BERLIN, "mon-sat")].map(coversWeek)).toEqual([true, false, false]);
  expect([isWithin(always, 0), isWithin(never, 0)]).toEqual([true, false]);
  expect([nextChange(always, 0), nextChange(never, 0)]).toEqual([undefined, undefined]);
  expect(coversWeek(timetable(BERLIN, "00:00-12:00", "12:00-24:00"))).toBe(true);
});

interface Window {
  readonly days: readonly number[];
  readonly times: readonly [from: number, until: number] | undefined;
}

const windows: fc.Arbitrary<readonly Window[]> = fc.array(
  fc.record({
    days: fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { minLength: 1 }),
    times: fc.option(
      fc
        .tuple(fc.integer({ min: 0, max: 1439 }), fc.integer({ min: 0, max: 1440 }))
        .filter(([from, until]) => from !== until),
      { nil: undefined },
    ),
  }),
  { minLength: 1, maxLength: 3 },
);

function written({ days, times }: Window): string {
  const time = (minutes: number) =>
    `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`.padStart(5, "0");
  const range = times === undefined ? "" : ` ${time(times[0])}-${time(times[1])}`;
  return `${days.map((day) => DAYS[day]).join(",")}${range}`;
}

/** The same asked of Intl and of the numbers, without any of our own arithmetic. */
function isShown(zone: string, ms: number, all: readonly Window[]): boolean {
  const style = { weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  const format = new Intl.DateTimeFormat("en-GB", { timeZone: zone, ...style });
  const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  const day = DAYS.indexOf(String(parts["weekday"]).toLowerCase());
  const minute = Number(parts["hour"]) * 60 + Number(parts["minute"]);
  return all.some(({ days, times }) => {
    const [from, until] = times ?? [0, 1440];
    const isBegun = days.includes(day) && minute >= from && (until < from || minute < until);
    return isBegun || (until < from && days.includes((day + 6) % 7) && minute < until);
  });
}

test("any timetable holds what the clocks show", () => {
  fc.assert(
    fc.property(instants(), windows, ({ zone, ms }, all) => {
      expect(isWithin(timetable(zone, ...all.map(written)), ms)).toBe(isShown(zone, ms, all));
    }),
    { numRuns: 500 },
  );
});

test("any timetable stays as it is until its next change, and is different then", () => {
  const STEP_MS = 15 * 60_000;
  fc.assert(
    fc.property(instants(), windows, ({ zone, ms }, all) => {
      const table = timetable(zone, ...all.map(written));
      const isNow = isWithin(table, ms);
      const change = nextChange(table, ms);
      const endMs = change ?? ms + 8 * 86_400_000;
      for (let at = ms; at < endMs; at += STEP_MS) expect(isWithin(table, at)).toBe(isNow);
      expect(isWithin(table, endMs - 1)).toBe(isNow);
      expect(isWithin(table, endMs)).toBe(change === undefined ? isNow : !isNow);
      expect(endMs).toBeGreaterThan(ms);
    }),
  );
});

describe("a time of the week", () => {
  const workdays = { zone: BERLIN, days: [0, 1, 2, 3, 4], timeMs: 6 * 3_600_000 };

  test.each([
    ["2026-03-02T05:00Z", "2026-03-02T05:00Z"],
    ["2026-03-02T04:59:59.999Z", "2026-02-27T05:00Z"],
    ["2026-03-08T12:00Z", "2026-03-06T05:00Z"],
    ["2026-03-30T04:00Z", "2026-03-30T04:00Z"],
  ])("came last, at %s, at %s", (at, last) => {
    expect(lastTimeOf(workdays, Date.parse(at))).toBe(Date.parse(last));
  });

  test("comes with the change where it is skipped, and once where clocks show it twice", () => {
    const night = { zone: BERLIN, days: [6], timeMs: 2.5 * 3_600_000 };
    expect(lastTimeOf(night, Date.parse("2026-03-29T12:00Z"))).toBe(Date.parse("2026-03-29T01:00Z"));
    expect(lastTimeOf(night, Date.parse("2026-10-25T01:40Z"))).toBe(Date.parse("2026-10-25T00:30Z"));
  });

  test("comes once a day, between a day and an hour less and more than a day after the last", () => {
    const HOUR_MS = 3_600_000;
    fc.assert(
      fc.property(instants(), fc.integer({ min: 0, max: 1440 }), ({ zone, ms }, minute) => {
        const daily = { zone, days: [0, 1, 2, 3, 4, 5, 6], timeMs: minute * 60_000 };
        const last = lastTimeOf(daily, ms);
        expect(last).toBeLessThanOrEqual(ms);
        expect(lastTimeOf(daily, last)).toBe(last);
        const before = lastTimeOf(daily, last - 1);
        const isApia = zone === "Pacific/Apia";
        if (!isApia) expect(Math.abs(last - before - 24 * HOUR_MS)).toBeLessThanOrEqual(HOUR_MS);
        expect(ms - last).toBeLessThanOrEqual((isApia ? 48 : 25) * HOUR_MS);
      }),
      { numRuns: 300 },
    );
  });
});

test("clocks show what Intl says they show, in every zone", () => {
  const every = Intl.supportedValuesOf("timeZone");
  fc.assert(
    fc.property(fc.constantFrom(...every), fc.integer({ min: 0, max: Date.UTC(2040) / 1000 }), (zone, s) => {
      const style = { dateStyle: "short", timeStyle: "medium" } as const;
      const format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, ...style });
      const shown = new Date(localTimeAt(zone, s * 1000)).toISOString().slice(0, 19).replace("T", " ");
      expect(shown).toBe(format.format(s * 1000));
    }),
  );
});

describe("a time that clocks show", () => {
  test.each([
    ["is found", "Europe/Berlin", "2026-07-01T14:00Z", "2026-07-01T12:00Z"],
    ["is found on the day of a change", "Europe/Berlin", "2026-03-29T06:00Z", "2026-03-29T04:00Z"],
    ["comes with the change where it is skipped", "Europe/Berlin", "2026-03-29T02:30Z", "2026-03-29T01:00Z"],
    ["comes first where it comes twice", "Europe/Berlin", "2026-10-25T02:30Z", "2026-10-25T00:30Z"],
    ["comes with the change of a skipped day", "Pacific/Apia", "2011-12-30T12:00Z", "2011-12-30T10:00Z"],
  ])("%s", (_, zone, shown, instant) => {
    expect(firstInstantOf(zone, Date.parse(shown))).toBe(Date.parse(instant));
  });

  test("has not come before its first instant", () => {
    fc.assert(
      fc.property(instants(), ({ zone, ms }) => {
        const shown = localTimeAt(zone, ms);
        const first = firstInstantOf(zone, shown);
        expect(first).toBeLessThanOrEqual(ms);
        expect(localTimeAt(zone, first)).toBe(shown);
        expect(localTimeAt(zone, first - 1)).toBeLessThan(shown);
      }),
    );
  });
});

test("the instant at which clocks are changed is found to the millisecond", () => {
  const [from, to] = [Date.parse("2026-10-24T12:00Z"), Date.parse("2026-10-25T12:00Z")];
  expect(nextShift("Europe/Berlin", from, to)).toBe(Date.parse("2026-10-25T01:00Z"));
  expect(nextShift("Asia/Tokyo", from, to)).toBeUndefined();
});

test("zones are known by their names", () => {
  expect([...ZONES, "europe/berlin", "CET"].filter((zone) => !isTimeZone(zone))).toEqual([]);
  expect(["", "Europe/Berln", "Mars/Olympus", "GMT+25"].filter(isTimeZone)).toEqual([]);
});

const WEEK_MINUTES = 7 * 24 * 60;

/** Whole minutes, half of them within a week of a change. */
function instants(): fc.Arbitrary<{ readonly zone: string; readonly ms: number }> {
  return fc.constantFrom(...ZONES).chain((zone) => {
    const changes = (CHANGES[zone] ?? []).map((text) => Date.parse(text));
    const near = fc
      .tuple(
        fc.constantFrom(...changes, Date.UTC(2026)),
        fc.integer({ min: -WEEK_MINUTES, max: WEEK_MINUTES }),
      )
      .map(([change, minutes]) => change + minutes * 60_000);
    const anywhere = fc
      .integer({ min: Date.UTC(2000) / 60_000, max: Date.UTC(2040) / 60_000 })
      .map((minutes) => minutes * 60_000);
    return fc.oneof(near, anywhere).map((ms) => ({ zone, ms }));
  });
}
