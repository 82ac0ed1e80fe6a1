/** Times, days, windows and units in a configuration. */

import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { isWithin, type Timetable } from "../../../src/base/timetable.ts";
import { parseDays, parseTimeOfDay, parseWindow } from "../../../src/config/times.ts";
import { parseDuration, parseMode, parseSize } from "../../../src/config/units.ts";
import { config, load } from "./stage.ts";

const HOUR_MS = 3_600_000;

/** In July Berlin is two hours ahead of UTC, New York four behind. */
const NOON_MS = Date.parse("2026-07-06T10:00Z");

function isOn(timetable: Timetable | undefined, ms: number): boolean | undefined {
  return timetable === undefined ? undefined : isWithin(timetable, ms);
}

describe("keys that depend on the time of day", () => {
  const text = (zone: string) =>
    config(`timezone: ${zone}
mailboxes:
  - email: a@example.com
    quiet: ["mon-fri 11:00-13:00", "sat"]
    expect:
      - { sender: "*@bank.example", by: 06:00, days: mon-fri, within: 12h }
      - { sender: lab@example.org, by: "18:30" }
limits:
  bandwidth:
    - { at: "mon-fri 11:00-13:00", rate: 2MiB/s }
    - { at: "sat,sun", rate: 500 KiB/s }
    - { rate: none }
`);

  test("apply as written, in the time zone", async () => {
    for (const [zone, isNoon] of [
      ["Europe/Berlin", true],
      ["America/New_York", false],
    ] as const) {
      const { mailboxes, limits } = await load(text(zone));
      expect(isOn(mailboxes[0]?.quiet, NOON_MS)).toBe(isNoon);
      expect(limits.bandwidth?.map(({ at }) => isOn(at, NOON_MS))).toEqual([isNoon, false, undefined]);
      expect(limits.bandwidth?.map(({ bytesPerSecond }) => bytesPerSecond)).toEqual([
        2_097_152,
        512_000,
        undefined,
      ]);
      expect(mailboxes[0]?.expect).toEqual([
        {
          sender: "*@bank.example",
          by: { zone, days: [0, 1, 2, 3, 4], timeMs: 6 * HOUR_MS },
          withinMs: 12 * HOUR_MS,
          described: "*@bank.example by 06:00 mon-fri within 12h",
        },
        {
          sender: "lab@example.org",
          by: { zone, days: [0, 1, 2, 3, 4, 5, 6], timeMs: 18.5 * HOUR_MS },
          withinMs: undefined,
          described: "lab@example.org by 18:30 daily",
        },
      ]);
    }
  });
});

describe("the default time zone", () => {
  const systemZone = vi.spyOn(Intl.DateTimeFormat.prototype, "resolvedOptions");
  const pretend = (timeZone: string) =>
    systemZone.mockReturnValue({ timeZone } as Intl.ResolvedDateTimeFormatOptions);
  afterEach(() => void systemZone.mockReset());
  const withKeys = (mailbox: string, more = "") =>
    config(`mailboxes: [{ email: a@example.com, ${mailbox} }]\n${more}`);

  test("is the system's", async () => {
    pretend("Asia/Tokyo");
    const { mailboxes } = await load(withKeys("expect: [{ sender: x, by: '06:00' }]"));
    expect(mailboxes[0]?.expect?.[0]?.by.zone).toBe("Asia/Tokyo");
  });

  test.each([
    ["paused: true", "", 0],
    ["since: now", "", 0],
    ["since: 2026-02-01", "", 1],
    ["quiet: [sat]", "", 1],
    ["expect: [{ sender: x, by: '06:00' }]", "", 1],
    ["paused: true", "limits: { bandwidth: 1MiB/s }", 0],
    ["paused: true", "limits: { bandwidth: [{ at: sat, rate: none }] }", 1],
  ])(
    "is looked up only if a key needs it, and is UTC with a warning if the system has none: %s %s",
    async (mailbox, more, count) => {
      pretend("Etc/Unknown");
      const { warnings } = await load(withKeys(mailbox, more));
      expect(warnings.filter((warning) => warning.startsWith("timezone:"))).toHaveLength(count);
      expect(systemZone).toHaveBeenCalledTimes(count);
    },
  );
});

/** Texts with their values, and texts that are refused. */
test.each([
  [
    "durations",
    parseDuration,
    "250ms=250, 1.5s=1500, 60s=60000, 2m=120000, 0.001ms=1, 24h=86400000, 36h=129600000, 3650d=315360000000",
    ", soon, 5, 0s, 0.0m, -1s, 1 s, 1S, s, 1.s, 3651d, forever, 1e3s, 99999999h",
  ],
  [
    "sizes",
    parseSize,
    "0=0, 512=512, 512B=512, 1kB=1000, 1KB=1000, 1KiB=1024, 10MiB=10485760, 10 MiB=10485760, 1GB=1000000000, 1.5GiB=1610612736, 1TiB=1099511627776",
    ", much, -1, 1gig, 10M, 1 Gi, 1;5GB, 1e9, 1.5, 999999999TiB, 1PiB",
  ],
  ["permissions", parseMode, "640=416, 0640=416, 0o640=416", ", rw-r-----, 0888, 1777, 04755, 64, 0x1a0"],
] as const)("%s have units, and nothing else is accepted", (_, parse, right, wrong) => {
  const pairs = right.split(", ").map((pair) => pair.split("=") as [string, string]);
  expect(pairs.map(([text]) => [text, parse(text)])).toEqual(
    pairs.map(([text, value]) => [text, Number(value)]),
  );
  expect(wrong.split(", ").filter((text) => parse(text) !== undefined)).toEqual([]);
});

test("permissions are octal in every notation", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0o777 }), (mode) => {
      const digits = mode.toString(8).padStart(3, "0");
      expect([digits, `0${digits}`, `0o${digits}`].map(parseMode)).toEqual([mode, mode, mode]);
    }),
  );
});

test.each([
  ["mon", "0"],
  ["mon-fri", "01234"],
  ["sat,sun", "56"],
  ["fri-mon", "0456"],
  ["mon,wed-thu,Sunday", "0236"],
  [" MON – Fri ", "01234"],
  ["mon-mon", "0"],
  ["daily", "0123456"],
])("days: %s", (text, days) => {
  expect(parseDays(text).join("")).toBe(days);
});

test.each([
  ["mno-fri", '"mno" is not a day: write mon, tue, wed, thu, fri, sat, sun or daily'],
  ["montag", '"montag" is not a day'],
  ["mon-", '"" is not a day'],
  ["mon-wed-fri", '"mon-wed-fri" is not a range such as mon-fri'],
  ["daily,mon", '"daily" is not a day'],
])("not days: %s", (text, problem) => {
  expect(() => parseDays(text)).toThrow(problem);
});

/** Hours since the start of the week. */
test.each([
  ["tue 08:00-18:00", "32-42"],
  ["08:00 - 09:00", "8-9 32-33 56-57 80-81 104-105 128-129 152-153"],
  ["mon, tue  8:00-9:00,10:00-11:00", "8-9 10-11 32-33 34-35"],
  ["sat 22:00-06:00", "142-150"],
  ["sun 22:00-06:00", "166-168 0-6"],
  ["sun 22:00-24:00", "166-168"],
  ["sun 22:00-00:00", "166-168"],
  ["sun", "144-168"],
])("windows: %s", (text, hours) => {
  const spans = parseWindow(text).map(({ fromMs, untilMs }) => `${fromMs / HOUR_MS}-${untilMs / HOUR_MS}`);
  expect(spans.join(" ")).toBe(hours);
});

test.each([
  ["", '"" is not a day'],
  ["   ", '"" is not a day'],
  ["funday", '"funday" is not a day'],
  ["mon 08:00", "08:00 is not a range such as 08:00-18:00"],
  ["mon 25:00-26:00", '"25:00" is not a time such as 08:30'],
  ["mon 08:60-09:00", '"08:60" is not a time such as 08:30'],
  ["mon 24:01-25:00", '"24:01" is not a time such as'],
  ["mon 8-18", '"8" is not a time such as'],
  ["mon 08:00-08:00", "08:00-08:00 ends when it begins: leave the times out for all day"],
  ["24:00-06:00", "24:00-06:00 cannot begin at 24:00: write 00:00"],
  ["mon tue 08:00-09:00", "write the days first, then the times, with commas within each"],
  ["08:00-09:00 mon", "write the days first, then the times, with commas within each"],
  ["mon tue", '"tue" is not a time such as'],
])("not windows: %j", (text, problem) => {
  expect(() => parseWindow(text)).toThrow(problem);
});

test("times of day", () => {
  expect(["06:00", "6:30", "24:00"].map(parseTimeOfDay)).toEqual([6 * HOUR_MS, 6.5 * HOUR_MS, 24 * HOUR_MS]);
  for (const text of ["6", "24:01", "06:60", "6am", ""])
    expect(() => parseTimeOfDay(text)).toThrow(`"${text}" is not a time such as 08:30`);
});
