/** Parses weekly windows and days: `mon-fri 08:00-18:00`, `sat,sun`, `22:00-06:00`, `daily`. */
import { DAY_MS, type Span, WEEK_MS } from "../base/timetable.ts";

/** `problem`: the end of a sentence. */
export type Parsed<Value> = { readonly value: Value } | { readonly problem: string };

const DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const EVERY_DAY = [0, 1, 2, 3, 4, 5, 6];
const MINUTE_MS = 60_000;

/** Days, times or both. A window that ends before it begins ends on the next day. */
export function parseWindow(text: string): Parsed<readonly Span[]> {
  const words = plain(text).split(" ");
  const [first = "", second] = words;
  const isTimeFirst = /\d/.test(first);
  if (first === "") return { problem: "it is empty" };
  if (words.length > 2 || (isTimeFirst && second !== undefined)) {
    return { problem: "write the days first, then the times, with commas within each" };
  }
  const days = parseDays(isTimeFirst ? "daily" : first);
  if ("problem" in days) return days;
  const times = isTimeFirst ? first : second;
  const ranges = times === undefined ? { value: [{ fromMs: 0, untilMs: DAY_MS }] } : parseTimes(times);
  if ("problem" in ranges) return ranges;
  return { value: days.value.flatMap((day) => ranges.value.flatMap((range) => onDay(day, range))) };
}

/** `mon-fri`, `sat,sun`, `fri-mon`, `daily` → numbers from 0, which is Monday. */
export function parseDays(text: string): Parsed<readonly number[]> {
  const words = plain(text);
  if (words === "daily") return { value: EVERY_DAY };
  const days = new Set<number>();
  for (const range of words.split(",")) {
    const ends = range.split("-").map(dayOf);
    const unknown = range.split("-").find((name) => dayOf(name) === undefined);
    if (unknown !== undefined) {
      return {
        problem: `${JSON.stringify(unknown)} is not a day: write mon, tue, wed, thu, fri, sat, sun or daily`,
      };
    }
    const [from = 0, to = from] = ends;
    if (ends.length > 2) return { problem: `${JSON.stringify(range)} is not a range such as mon-fri` };
    for (let day = from; ; day = (day + 1) % 7) {
      days.add(day);
      if (day === to) break;
    }
  }
  return { value: [...days].toSorted() };
}

/** `06:00` → milliseconds since midnight; `24:00` is the end of the day. */
export function parseTimeOfDay(text: string): number | undefined {
  const [, hours, minutes] = /^(\d{1,2}):([0-5]\d)$/.exec(text.trim()) ?? [];
  if (hours === undefined) return undefined;
  const timeMs = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS;
  return timeMs <= DAY_MS ? timeMs : undefined;
}

function parseTimes(text: string): Parsed<readonly Span[]> {
  const ranges: Span[] = [];
  for (const range of text.split(",")) {
    const times = range.split("-");
    const wrong = times.find((time) => parseTimeOfDay(time) === undefined);
    if (wrong !== undefined) return { problem: `${JSON.stringify(wrong)} is not a time such as 08:30` };
    if (times.length !== 2) return { problem: `${range} is not a range such as 08:00-18:00` };
    const [fromMs = 0, untilMs = 0] = times.map(parseTimeOfDay);
    if (fromMs === DAY_MS) return { problem: `${range} cannot begin at 24:00: write 00:00` };
    if (fromMs === untilMs)
      return { problem: `${range} ends when it begins: leave the times out for all day` };
    ranges.push({ fromMs, untilMs });
  }
  return { value: ranges };
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

function dayOf(name: string): number | undefined {
  const day = DAYS.findIndex((known) => name === known || name === known.slice(0, 3));
  return day < 0 ? undefined : day;
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
