/** Parses weekly windows and days: `mon-fri 08:00-18:00`, `sat,sun`, `22:00-06:00`, `daily`. */
import { DAY_MS, type Span, WEEK_MS } from "../base/timetable.ts";

/** Why a text is not a time: the end of a sentence. */
export class WrongTime extends Error {}

const DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const MINUTE_MS = 60_000;

/** Days, times or both. A window that ends before it begins ends on the next day. Throws `WrongTime`. */
export function parseWindow(text: string): Span[] {
  const [first = "", second, ...others] = plain(text).split(" ");
  const isTimeFirst = /\d/.test(first);
  if (others.length > 0 || (isTimeFirst && second !== undefined)) {
    throw new WrongTime("write the days first, then the times, with commas within each");
  }
  const days = parseDays(isTimeFirst ? "daily" : first);
  const times = isTimeFirst ? first : second;
  const ranges = times?.split(",").map(parseRange) ?? [{ fromMs: 0, untilMs: DAY_MS }];
  return days.flatMap((day) => ranges.flatMap((range) => onDay(day, range)));
}

/** `mon-fri`, `sat,sun`, `fri-mon`, `daily` → numbers from 0, which is Monday. Throws `WrongTime`. */
export function parseDays(text: string): number[] {
  const words = plain(text);
  if (words === "daily") return [...DAYS.keys()];
  const days = words.split(",").flatMap((range) => {
    const [from = 0, to = from, ...others] = range.split("-").map(parseDay);
    if (others.length > 0) throw new WrongTime(`${JSON.stringify(range)} is not a range such as mon-fri`);
    const count = ((to - from + DAYS.length) % DAYS.length) + 1;
    return Array.from({ length: count }, (_, at) => (from + at) % DAYS.length);
  });
  return [...new Set(days)].toSorted();
}

function parseDay(name: string): number {
  const day = DAYS.findIndex((known) => name === known || name === known.slice(0, 3));
  if (day >= 0) return day;
  throw new WrongTime(
    `${JSON.stringify(name)} is not a day: write mon, tue, wed, thu, fri, sat, sun or daily`,
  );
}

/** `06:00` → milliseconds since midnight; `24:00` is the end of the day. Throws `WrongTime`. */
export function parseTimeOfDay(text: string): number {
  const [, hours, minutes] = /^(\d{1,2}):([0-5]\d)$/.exec(text) ?? [];
  const timeMs = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS;
  if (timeMs <= DAY_MS) return timeMs;
  throw new WrongTime(`${JSON.stringify(text)} is not a time such as 08:30`);
}

function parseRange(range: string): Span {
  const [fromMs = 0, untilMs, ...others] = range.split("-").map(parseTimeOfDay);
  if (untilMs === undefined || others.length > 0)
    throw new WrongTime(`${range} is not a range such as 08:00-18:00`);
  if (fromMs === DAY_MS) throw new WrongTime(`${range} cannot begin at 24:00: write 00:00`);
  if (fromMs === untilMs)
    throw new WrongTime(`${range} ends when it begins: leave the times out for all day`);
  return { fromMs, untilMs };
}

/** Two spans for a window across the end of the week. */
function onDay(day: number, { fromMs, untilMs }: Span): Span[] {
  const from = day * DAY_MS + fromMs;
  const until = day * DAY_MS + untilMs + (untilMs < fromMs ? DAY_MS : 0);
  if (until <= WEEK_MS) return [{ fromMs: from, untilMs: until }];
  return [
    { fromMs: from, untilMs: WEEK_MS },
    { fromMs: 0, untilMs: until - WEEK_MS },
  ];
}

/** In lower case, with one space between words and none around commas and dashes. */
function plain(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/\s*([,–-])\s*/g, "$1")
    .replaceAll("–", "-")
    .replace(/\s+/g, " ");
}
