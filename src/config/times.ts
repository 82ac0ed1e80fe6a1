/** Keys that depend on the time of day: time zone, quiet hours and expected transfers. Problems go to the draft. */
import { nearestName } from "../base/nearest.ts";
import {
  coversWeek,
  firstInstantOf,
  isTimeZone,
  makeTimetable,
  type Span,
  type Timetable,
} from "../base/timetable.ts";
import type { Expectation } from "../model/mailbox.ts";
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { key, READ, type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";
import { DURATION } from "./units.ts";
import { parseDays, parseTimeOfDay, parseWindow } from "./weekly.ts";

export const TIMEZONE = {
  ...TEXT,
  title: "the name of a time zone such as Europe/Berlin",
  maxLength: 100,
  description:
    "The time zone for `limits.bandwidth`, `quiet`, `expect` and dates in `since`, and for the times in commands, in the console and in mails, as an IANA name. Default: the system's.",
} as const satisfies SchemaNode;

export const WINDOW = {
  ...TEXT,
  title: "a weekly window such as mon-fri 08:00-18:00",
  maxLength: 200,
} as const satisfies SchemaNode;

export const QUIET = {
  type: "array",
  title: "a list of weekly windows such as mon-fri 08:00-18:00",
  items: WINDOW,
  minItems: 1,
  description:
    "The quiet hours, in which no download starts. Running downloads continue, and the mailbox is still polled. Two kinds of transfers are downloaded anyway: those that expire before the quiet hours end, or within six hours after; and those for which an operator gives an order or a password.",
  [READ]: quietReader("leaves no time for downloads: to stop the mailbox, set paused"),
} as const satisfies SchemaNode;

export const SINCE = {
  type: "string",
  title: "all, now, or a date such as 2026-12-01 or 2026-12-01T06:00",
  pattern: "^(all|now|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2})?)$",
  default: "all",
  description:
    "Which transfers to download. `all`: all of them. `now`: all except those that the first poll with this setting lists. A date (in `timezone`): those that Inlet discovers from that date on. Inlet records all other transfers as ignored; `inlet retry` downloads one of these nevertheless. It does not matter when a transfer was sent, because the service does not say that. So with a date in the past, Inlet downloads all transfers.",
  [READ]: readSince,
} as const satisfies SchemaNode;

const EXPECTATION = {
  type: "object",
  title: "an expectation",
  properties: {
    sender: key(
      { ...TEXT, maxLength: 254 },
      "The expected sender: an address, in which `*` matches any characters and `?` matches one.",
    ),
    by: {
      type: "string",
      title: "a time of day such as 06:00",
      pattern: "^[0-9]{1,2}:[0-9]{2}$",
      description: "The time of day by which the transfer must have been listed.",
    },
    days: key(
      { ...TEXT, title: "days such as mon-fri", maxLength: 100, default: "daily" },
      "The days on which the transfer is expected.",
    ),
    within: key(
      DURATION,
      "How long before the time in `by` the transfer may arrive, at most 24h. A transfer that arrives earlier does not count. Default: any time since the previous expected time. With this default, a late transfer also counts for the next expected time, so Inlet does not report if the next one is missing.",
    ),
  },
  required: ["sender", "by"],
  additionalProperties: false,
} as const satisfies SchemaNode;

export const EXPECT = {
  type: "array",
  title: "a list of expectations",
  items: EXPECTATION,
  description: "Transfers that arrive regularly. If one does not arrive in time, Inlet reports it.",
  [READ]: readExpect,
} as const satisfies SchemaNode;

const FALLBACK_ZONE = "UTC";

/** A misspelt zone differs by a letter or two, or an underscore. */
const MAX_ZONE_DISTANCE = 3;

/** `given`: the value of `timezone`. Default: the system's zone. Some systems have an offset without a named zone. */
export function readTimezone(given: string | undefined, draft: Draft): string {
  if (given === undefined) {
    const { timeZone: system } = Intl.DateTimeFormat().resolvedOptions();
    if (isTimeZone(system)) return system;
    draft.warnings.push("timezone: not set, and the system has none: Inlet uses UTC.");
    return FALLBACK_ZONE;
  }
  if (isTimeZone(given)) return given;
  const nearest = nearestName(given, Intl.supportedValuesOf("timeZone"), () => MAX_ZONE_DISTANCE);
  const meant = nearest === undefined ? "" : `: did you mean ${nearest}?`;
  draft.problems.add(["timezone"], `${showValue(given)} is not ${TIMEZONE.title}${meant}`);
  return FALLBACK_ZONE;
}

/** `ifAlways`: the problem of windows that cover the whole week. */
export function quietReader(ifAlways: string) {
  return (windows: readonly (string | undefined)[], path: KeyPath, draft: Draft): Timetable => {
    const spans = windows.flatMap((text, at) =>
      text === undefined ? [] : readWindow(text, [...path, at], draft),
    );
    const quiet = makeTimetable(draft.zone(), spans);
    if (coversWeek(quiet)) draft.problems.add(path, ifAlways);
    return quiet;
  };
}

export function readWindow(text: string, path: KeyPath, { problems }: Draft): readonly Span[] {
  const parsed = parseWindow(text);
  if ("value" in parsed) return parsed.value;
  problems.add(path, `${showValue(text)} is not ${WINDOW.title}: ${parsed.problem}`);
  return [];
}

type RawExpectation = Written<typeof EXPECTATION>;

function readExpect(
  rules: readonly (RawExpectation | undefined)[],
  path: KeyPath,
  draft: Draft,
): Expectation[] {
  const seen = new Map<string, number>();
  return rules.flatMap((rule, at) => {
    const parsed = rule && readExpectation(rule, [...path, at], draft);
    if (parsed === undefined) return [];
    const known = seen.get(parsed.described);
    if (known !== undefined) draft.problems.add([...path, at], `repeats expect[${known}]`);
    seen.set(parsed.described, at);
    return [parsed];
  });
}

function readExpectation(raw: RawExpectation, path: KeyPath, draft: Draft): Expectation | undefined {
  const { days: defaultDays, by: time, within: duration } = EXPECTATION.properties;
  const { sender, by, days: givenDays = defaultDays.default, within } = raw;
  if (sender === undefined || by === undefined) return undefined;
  const timeMs = parseTimeOfDay(by);
  if (timeMs === undefined) draft.problems.add([...path, "by"], `${showValue(by)} is not ${time.title}`);
  const days = parseDays(givenDays);
  if ("problem" in days) {
    const message = `${showValue(givenDays)} is not ${defaultDays.title}: ${days.problem}`;
    draft.problems.add([...path, "days"], message);
  }
  return {
    sender,
    by: { zone: draft.zone(), days: "value" in days ? days.value : [], timeMs: timeMs ?? 0 },
    withinMs: within === undefined ? undefined : duration[READ](within, [...path, "within"], draft),
    described: `${sender} by ${by} ${givenDays}${within === undefined ? "" : ` within ${within}`}`,
  };
}

/** The instant of a date; `undefined` for `all`. */
function readSince(text: string, path: KeyPath, draft: Draft): number | "now" | undefined {
  if (text === "all") return undefined;
  if (text === "now") return "now";
  const localMs = Date.parse(text.includes("T") ? `${text}Z` : text);
  // `2026-02-30` is read as a day in March.
  if (!Number.isNaN(localMs) && new Date(localMs).toISOString().startsWith(text)) {
    return firstInstantOf(draft.zone(), localMs);
  }
  draft.problems.add(path, `${showValue(text)} is not a date`);
  return undefined;
}
