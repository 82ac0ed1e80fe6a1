import { expect, test } from "vitest";
import { parseDays, parseTimeOfDay, parseWindow } from "../../../src/config/times.ts";

const HOUR_MS = 3_600_000;

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
