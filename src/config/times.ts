/** Keys that depend on the time of day: time zone, weekly windows, quiet hours and expected transfers. */
import { nearestName } from "../base/nearest.ts";
import {
  coversWeek,
  DAY_MS,
  firstInstantOf,
  isTimeZone,
  makeTimetable,
  type Span,
  WEEK_MS,
} from "../base/timetable.ts";
import type { Expectation } from "../model/mailbox.ts";
import { type Spot, showValue } from "./draft.ts";
import { entry, key, list, READ, type Read, type ReadItems, type SchemaNode, TEXT } from "./schema-nodes.ts";
import { DURATION } from "./units.ts";

export const TIMEZONE = key(
  { ...TEXT, title: "the name of a time zone such as Europe/Berlin", maxLength: 100 },
  "The time zone of all times in the configuration, in commands, in the console and in mails. Default: the system's.",
);

const WINDOW_TITLE = "a weekly window such as mon-fri 08:00-18:00";

export const WINDOW = {
  ...TEXT,
  title: WINDOW_TITLE,
  maxLength: 200,
  [READ]: (text: string, at: Spot) => readTime(parseWindow, text, WINDOW_TITLE, at) ?? [],
} as const satisfies SchemaNode;

export const QUIET = key(
  {
    ...list("a list of weekly windows such as mon-fri 08:00-18:00", WINDOW),
    minItems: 1,
    [READ]: quietReader("leaves no time for downloads: to stop the mailbox, set paused"),
  },
  "The quiet hours, in which no download starts. Running downloads continue, and the mailbox is still polled. Transfers that expire before the end of the quiet hours, or within six hours after, are downloaded anyway, as are those for which an operator gives an order or a password.",
);

export const SINCE = key(
  {
    type: "string",
    title: "all, now, or a date such as 2026-12-01 or 2026-12-01T06:00",
    pattern: "^(all|now|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2})?)$",
    default: "all",
    [READ]: readSince,
  },
  "Which transfers to download. `all`: all of them. `now`: all except those that the first poll with this setting lists. A date: those that Inlet discovers from then on, whenever they were sent. The others are ignored; `inlet retry` downloads one nevertheless.",
);

const EXPECTATION_FORM = entry("an expectation", ["sender", "by"], {
  sender: key(
    { ...TEXT, maxLength: 254 },
    "The expected sender: an address, in which `*` matches any characters and `?` matches one.",
  ),
  by: key(
    {
      type: "string",
      title: "a time of day such as 06:00",
      pattern: "^(([01]?[0-9]|2[0-3]):[0-5][0-9]|24:00)$",
    },
    "The time of day by which the transfer must have been listed.",
  ),
  days: key(
    { ...TEXT, title: "days such as mon-fri", maxLength: 100, default: "daily" },
    "The days on which the transfer is expected.",
  ),
  within: key(
    DURATION,
    "How long before the time in `by` the transfer may arrive, at most 24h. Default: any time since the previous expected time; a late transfer then also counts for the next one.",
  ),
});

const EXPECTATION = { ...EXPECTATION_FORM, [READ]: readExpectation } as const satisfies SchemaNode;

export const EXPECT = key(
  { ...list("a list of expectations", EXPECTATION), [READ]: readExpect },
  "Transfers that arrive regularly. If one does not arrive in time, Inlet reports it.",
);

const FALLBACK_ZONE = "UTC";

/** A misspelt zone differs by a letter or two, or an underscore. */
const MAX_ZONE_DISTANCE = 3;

/** Default: the system's zone. Some systems have an offset without a named zone. */
export function readTimezone(at: Spot): string {
  if (!at.isSet()) {
    const { timeZone: system } = Intl.DateTimeFormat().resolvedOptions();
    if (isTimeZone(system)) return system;
    at.warn("not set, and the system has none: Inlet uses UTC.");
    return FALLBACK_ZONE;
  }
  const given = String(at.raw);
  if (isTimeZone(given)) return given;
  const nearest = nearestName(given, Intl.supportedValuesOf("timeZone"), () => MAX_ZONE_DISTANCE);
  const meant = nearest === undefined ? "" : `: did you mean ${nearest}?`;
  at.refuse(`${showValue(given)} is not ${TIMEZONE.title}${meant}`);
  return FALLBACK_ZONE;
}

/** Refuses a text for which `parse` throws `WrongTime`. */
function readTime<Time>(
  parse: (text: string) => Time,
  text: string,
  title: string,
  at: Spot,
): Time | undefined {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof WrongTime)) throw error;
    return at.refuse(`${showValue(text)} is not ${title}: ${error.message}`);
  }
}

/** `ifAlways`: the message for windows that cover the whole week. */
export function quietReader(ifAlways: string) {
  return (windows: readonly (readonly Span[] | undefined)[], at: Spot) => {
    const quiet = makeTimetable(
      at.draft.zone(),
      windows.flatMap((spans) => spans ?? []),
    );
    if (coversWeek(quiet)) at.refuse(ifAlways);
    return quiet;
  };
}

function readExpect(rules: ReadItems<typeof EXPECTATION>, at: Spot): Expectation[] {
  const read: Expectation[] = [];
  for (const [number, rule] of rules.entries()) {
    if (rule === undefined) continue;
    const known = rules.findIndex((it) => it?.described === rule.described);
    if (known < number) at.refuse(`repeats expect[${known}]`, number);
    read.push(rule);
  }
  return read;
}

function readExpectation(
  { sender, by, days, within: withinMs }: Read<typeof EXPECTATION_FORM>,
  at: Spot,
): Expectation {
  const dayNumbers = readTime(parseDays, days, EXPECTATION_FORM.properties.days.title, at.at("days")) ?? [];
  const within = withinMs === undefined ? "" : ` within ${at.at("within").raw}`;
  return {
    sender,
    by: { zone: at.draft.zone(), days: dayNumbers, timeMs: parseTimeOfDay(by) },
    withinMs,
    described: `${sender} by ${by} ${days}${within}`,
  };
}

/** The instant of a date; `undefined` for `all`. */
function readSince(text: string, at: Spot): number | "now" | undefined {
  if (text === "all") return undefined;
  if (text === "now") return "now";
  const localMs = Date.parse(text.includes("T") ? `${text}Z` : text);
  // `2026-02-30` is read as a day in March.
  if (!Number.isNaN(localMs) && new Date(localMs).toISOString().startsWith(text)) {
    return firstInstantOf(at.draft.zone(), localMs);
  }
  return at.refuse(`${showValue(text)} is not a date`);
}

/** Its message follows "… is not a weekly window: ", and says why. */
class WrongTime extends Error {}

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
  // Not so for NaN, from a text that does not match.
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
