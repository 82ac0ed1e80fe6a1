/** Keys that depend on the time of day: the time zone, quiet hours and expected transfers. Problems go to the draft. */
import { nearestName } from "../base/nearest.ts";
import { coversWeek, isTimeZone, makeTimetable, type Span, type Timetable } from "../base/timetable.ts";
import type { Expectation } from "../model/mailbox.ts";
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";
import { DURATION, readDuration } from "./units.ts";
import { parseDays, parseTimeOfDay, parseWindow } from "./weekly.ts";

export const TIMEZONE = {
  ...TEXT,
  title: "the name of a time zone such as Europe/Berlin",
  maxLength: 100,
  description:
    "Whose clocks count for `limits.bandwidth`, `quiet` and `expect`, by its IANA name. Where absent: the system's.",
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
    "When no download begins. Running downloads continue, and the mailbox is still polled. A transfer that expires before the quiet hours end, or within six hours after, is downloaded all the same, and so is one for which a person gives an order or a password.",
} as const satisfies SchemaNode;

export const EXPECT = {
  type: "array",
  title: "a list of expectations",
  items: {
    type: "object",
    title: "an expectation",
    properties: {
      sender: {
        ...TEXT,
        maxLength: 254,
        description:
          "Whose transfer is expected: an address in which `*` matches any characters and `?` matches one.",
      },
      by: {
        type: "string",
        title: "a time of day such as 06:00",
        pattern: "^[0-9]{1,2}:[0-9]{2}$",
        description: "The time of day by which it must have been seen.",
      },
      days: {
        ...TEXT,
        title: "days such as mon-fri",
        maxLength: 100,
        default: "daily",
        description: "The days on which it must.",
      },
      within: {
        ...DURATION,
        description:
          "How long before that time it may come, at most 24h. Where absent: since the time before, so that one that is late counts for the next time too.",
      },
    },
    required: ["sender", "by"],
    additionalProperties: false,
  },
  description: "Transfers that are to come regularly. It is reported when one of them does not come in time.",
} as const satisfies SchemaNode;

const EXPECTATION = EXPECT.items.properties;
const FALLBACK_ZONE = "UTC";

/** A misspelt zone differs by a letter or two, or an underscore. */
const MAX_ZONE_DISTANCE = 3;

/** The time zone, and the keys that use it. */
interface RawTimes {
  readonly timezone?: string;
  readonly limits?: { readonly bandwidth?: unknown };
  readonly mailboxes?: readonly ({ readonly quiet?: unknown; readonly expect?: unknown } | undefined)[];
}

/** The system is slow to name its zone: it is asked only where a key uses it. */
export function readTimezone(
  raw: RawTimes,
  draft: Draft,
  askSystem: () => string | undefined = systemZone,
): string {
  const { timezone: given } = raw;
  if (given === undefined) {
    if (!usesClock(raw)) return FALLBACK_ZONE;
    const system = askSystem();
    if (system !== undefined && isTimeZone(system)) return system;
    draft.warnings.push("timezone: not given, and the system does not say its own: UTC counts.");
    return FALLBACK_ZONE;
  }
  if (isTimeZone(given)) return given;
  const nearest = nearestName(given, Intl.supportedValuesOf("timeZone"), () => MAX_ZONE_DISTANCE);
  const meant = nearest === undefined ? "" : `: did you mean ${nearest}?`;
  draft.problems.add(["timezone"], `${showValue(given)} is not ${TIMEZONE.title}${meant}`);
  return FALLBACK_ZONE;
}

function usesClock({ limits, mailboxes = [] }: RawTimes): boolean {
  return (
    typeof limits?.bandwidth === "object" ||
    mailboxes.some((mailbox) => mailbox?.quiet !== undefined || mailbox?.expect !== undefined)
  );
}

/** Some systems set the offset of their clocks without the name of a zone. */
function systemZone(): string | undefined {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

export function readQuiet(
  windows: Written<typeof QUIET> | undefined,
  path: KeyPath,
  zone: string,
  draft: Draft,
): Timetable | undefined {
  if (windows === undefined) return undefined;
  const spans = windows.flatMap((text, at) =>
    text === undefined ? [] : readWindow(text, [...path, at], draft),
  );
  const quiet = makeTimetable(zone, spans);
  if (coversWeek(quiet)) {
    draft.problems.add(path, "leaves no time for downloads: to leave the mailbox alone, set paused");
  }
  return quiet;
}

export function readWindow(text: string, path: KeyPath, { problems }: Draft): readonly Span[] {
  const parsed = parseWindow(text);
  if ("value" in parsed) return parsed.value;
  problems.add(path, `${showValue(text)} is not ${WINDOW.title}: ${parsed.problem}`);
  return [];
}

export function readExpect(
  rules: Written<typeof EXPECT>,
  path: KeyPath,
  zone: string,
  draft: Draft,
): Expectation[] {
  const seen = new Map<string, number>();
  return rules.flatMap((rule, at) => {
    if (rule?.sender === undefined || rule.by === undefined) return [];
    const { sender, by, days, within } = rule;
    const parsed = readExpectation({ sender, by, days, within }, [...path, at], zone, draft);
    const known = seen.get(parsed.described);
    if (known !== undefined) draft.problems.add([...path, at], `expects the same as entry ${known}`);
    seen.set(parsed.described, at);
    return [parsed];
  });
}

interface RawExpectation {
  readonly sender: string;
  readonly by: string;
  readonly days: string | undefined;
  readonly within: string | undefined;
}

function readExpectation(
  { sender, by, days: givenDays = EXPECTATION.days.default, within }: RawExpectation,
  path: KeyPath,
  zone: string,
  draft: Draft,
): Expectation {
  const timeMs = parseTimeOfDay(by);
  if (timeMs === undefined) {
    draft.problems.add([...path, "by"], `${showValue(by)} is not ${EXPECTATION.by.title}`);
  }
  const days = parseDays(givenDays);
  if ("problem" in days) {
    const { title } = EXPECTATION.days;
    draft.problems.add([...path, "days"], `${showValue(givenDays)} is not ${title}: ${days.problem}`);
  }
  return {
    sender,
    by: { zone, days: "value" in days ? days.value : [], timeMs: timeMs ?? 0 },
    withinMs: within === undefined ? undefined : readDuration(within, [...path, "within"], draft),
    described: `${sender} by ${by} ${givenDays}${within === undefined ? "" : ` within ${within}`}`,
  };
}
