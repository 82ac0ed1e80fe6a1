/** What goes by the clock: the time zone, the bandwidth, quiet hours and expected transfers. Problems go to the draft. */
import { nearestName } from "../base/nearest.ts";
import { isTimeZone } from "../base/time-zone.ts";
import { isEndless, makeTimetable, type Span, type Timetable } from "../base/timetable.ts";
import type { BandwidthRule, Expectation } from "../model/mailbox.ts";
import type { Draft } from "./draft.ts";
import { type KeyPath, showValue } from "./problems.ts";
import type { RawExpectation, RawSettings } from "./raw.ts";
import { BANDWIDTH, EXPECT, QUIET, TIMEZONE } from "./schema-times.ts";
import { parseDuration, parseRate } from "./units.ts";
import { parseDays, parseTimeOfDay, parseWindow } from "./weekly.ts";

const LEAST_BYTES_PER_SECOND = 1024;
const FALLBACK_ZONE = "UTC";

/** A slip in a name is a letter or two, or an underscore. */
const MOST_LETTERS_WRONG = 3;

/** To ask the system takes a while: where nothing goes by the clock, it is not asked. */
export function parseTimezone(draft: Draft, askSystem: () => string | undefined = systemZone): string {
  const given = draft.raw.timezone;
  if (given === undefined) {
    if (!usesClock(draft.raw)) return FALLBACK_ZONE;
    const system = askSystem();
    if (system !== undefined && isTimeZone(system)) return system;
    draft.warnings.push("timezone: not given, and the system does not say its own: UTC counts.");
    return FALLBACK_ZONE;
  }
  if (isTimeZone(given)) return given;
  const nearest = nearestName(given, Intl.supportedValuesOf("timeZone"), () => MOST_LETTERS_WRONG);
  const meant = nearest === undefined ? "" : `: did you mean ${nearest}?`;
  draft.problems.add(["timezone"], `${showValue(given)} is not ${TIMEZONE.title}${meant}`);
  return FALLBACK_ZONE;
}

export function parseBandwidth(zone: string, draft: Draft): BandwidthRule[] {
  const path = ["limits", "bandwidth"];
  const given = draft.raw.limits?.bandwidth ?? BANDWIDTH.default;
  if (typeof given === "string") return [{ at: undefined, bytesPerSecond: parseLimit(given, path, draft) }];
  const rules: BandwidthRule[] = [];
  for (const [index, entry] of given.entries()) {
    const last = rules.at(-1);
    if (last !== undefined && (last.at === undefined || isEndless(last.at))) {
      draft.problems.add([...path, index], "never counts, because the entry before it always does");
    }
    if (entry?.rate === undefined) continue;
    const spans = entry.at === undefined ? undefined : parseSpans(entry.at, [...path, index, "at"], draft);
    const at = spans === undefined ? undefined : makeTimetable(zone, spans);
    rules.push({ at, bytesPerSecond: parseLimit(entry.rate, [...path, index, "rate"], draft) });
  }
  return rules;
}

export function parseQuiet(
  windows: readonly (string | undefined)[] | undefined,
  path: KeyPath,
  zone: string,
  draft: Draft,
): Timetable | undefined {
  if (windows === undefined) return undefined;
  const spans = windows.flatMap((text, at) =>
    text === undefined ? [] : parseSpans(text, [...path, at], draft),
  );
  const quiet = makeTimetable(zone, spans);
  if (isEndless(quiet)) {
    draft.problems.add(path, "leaves no time for downloads: to leave the mailbox alone, set paused");
  }
  return quiet;
}

export function parseExpect(
  rules: readonly (RawExpectation | undefined)[],
  path: KeyPath,
  zone: string,
  draft: Draft,
): Expectation[] {
  const seen = new Map<string, number>();
  return rules.flatMap((rule, at) => {
    if (rule?.sender === undefined || rule.by === undefined) return [];
    const parsed = parseExpectation(rule.sender, rule.by, rule, [...path, at], zone, draft);
    const known = seen.get(parsed.described);
    if (known !== undefined) draft.problems.add([...path, at], `expects the same as entry ${known}`);
    seen.set(parsed.described, at);
    return [parsed];
  });
}

function parseExpectation(
  sender: string,
  by: string,
  { days: givenDays = EXPECT.items.properties.days.default, within }: RawExpectation,
  path: KeyPath,
  zone: string,
  draft: Draft,
): Expectation {
  const timeMs = parseTimeOfDay(by);
  if (timeMs === undefined) {
    draft.problems.add([...path, "by"], `${showValue(by)} is not ${EXPECT.items.properties.by.title}`);
  }
  const days = parseDays(givenDays);
  if ("problem" in days) {
    const { title } = EXPECT.items.properties.days;
    draft.problems.add([...path, "days"], `${showValue(givenDays)} is not ${title}: ${days.problem}`);
  }
  const withinMs = within === undefined ? undefined : parseDuration(within);
  if (within !== undefined && withinMs === undefined) {
    draft.problems.add([...path, "within"], `${showValue(within)} is longer than 24h`);
  }
  return {
    sender,
    by: { zone, days: "value" in days ? days.value : [], timeMs: timeMs ?? 0 },
    withinMs,
    described: `${sender} by ${by} ${givenDays}${within === undefined ? "" : ` within ${within}`}`,
  };
}

function parseSpans(text: string, path: KeyPath, { problems }: Draft): readonly Span[] {
  const parsed = parseWindow(text);
  if ("value" in parsed) return parsed.value;
  problems.add(path, `${showValue(text)} is not ${QUIET.items.title}: ${parsed.problem}`);
  return [];
}

/** `undefined`: none. */
function parseLimit(text: string, path: KeyPath, { problems }: Draft): number | undefined {
  if (text === "none") return undefined;
  const bytesPerSecond = parseRate(text);
  if (bytesPerSecond !== undefined && bytesPerSecond >= LEAST_BYTES_PER_SECOND) return bytesPerSecond;
  const amiss = bytesPerSecond === undefined ? "more than can be counted" : "less than 1KiB/s";
  problems.add(path, `${showValue(text)} is ${amiss}`);
  return undefined;
}

function usesClock({ limits, mailboxes = [] }: RawSettings): boolean {
  return (
    typeof limits?.bandwidth === "object" ||
    mailboxes.some((mailbox) => mailbox?.quiet !== undefined || mailbox?.expect !== undefined)
  );
}

/** Some settings of a system say when its clocks change, but not where it is. */
function systemZone(): string | undefined {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
