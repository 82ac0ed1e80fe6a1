/**
 * Weekly times in the local time of a time zone. When clocks go forward or back, a span is shorter or longer. A
 * `WeeklyTime` still occurs once: at the end of the gap if it is skipped, the first time if it is repeated. Local times
 * are counted in milliseconds as if they were UTC.
 */

export const DAY_MS = 86_400_000;
export const WEEK_MS = 7 * DAY_MS;

/** The epoch began on a Thursday; weeks begin on Monday. */
const MONDAY_MS = 3 * DAY_MS;
/** No change is further away: if clocks skip a span in one week, it comes in the next. */
const FURTHEST_CHANGE_MS = 3 * WEEK_MS;

/** A part of the week, in milliseconds since its start; the end is exclusive. */
export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface Timetable {
  readonly zone: string;
  /** Sorted, without overlaps. */
  readonly spans: readonly Span[];
}

/** A time of day on some days of the week. */
export interface WeeklyTime {
  readonly zone: string;
  /** Monday is 0; at least one day. */
  readonly days: readonly number[];
  /** Since midnight. */
  readonly timeMs: number;
}

/** The spans may overlap. */
export function makeTimetable(zone: string, spans: readonly Span[]): Timetable {
  const merged: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const last = merged.at(-1);
    if (last === undefined || span.fromMs > last.untilMs) merged.push(span);
    else merged[merged.length - 1] = { ...last, untilMs: Math.max(last.untilMs, span.untilMs) };
  }
  return { zone, spans: merged };
}

/** Whether it covers the whole week. */
export function coversWeek({ spans: [first] }: Timetable): boolean {
  return first?.fromMs === 0 && first.untilMs === WEEK_MS;
}

export function isWithin({ zone, spans }: Timetable, ms: number): boolean {
  const at = timeOfWeek(zone, ms);
  return spans.some(({ fromMs, untilMs }) => fromMs <= at && at < untilMs);
}

/** The first instant after `ms` at which `isWithin` changes; `undefined` for none. */
export function nextChange(timetable: Timetable, ms: number): number | undefined {
  if (timetable.spans.length === 0 || coversWeek(timetable)) return undefined;
  const isNow = isWithin(timetable, ms);
  for (let at = nextEdge(timetable, ms); at <= ms + FURTHEST_CHANGE_MS; at = nextEdge(timetable, at)) {
    if (isWithin(timetable, at) !== isNow) return at;
  }
  return undefined;
}

/** The last instant, at most `ms`, at which the time occurred. */
export function lastTimeOf({ zone, days, timeMs }: WeeklyTime, ms: number): number {
  // Clocks that go back at midnight may have shown the first minutes of tomorrow already.
  const tomorrow = Math.floor(localTimeAt(zone, ms) / DAY_MS) * DAY_MS + DAY_MS;
  // A week, tomorrow, and spare days in case today's time is still to come, or clocks have skipped a day.
  const instants = Array.from({ length: 10 }, (_, ago) => tomorrow - ago * DAY_MS)
    .filter((midnight) => days.includes(Math.floor(weekTimeOf(midnight) / DAY_MS)))
    .map((midnight) => firstInstantOf(zone, midnight + timeMs));
  return Math.max(...instants.filter((instant) => instant <= ms));
}

/** The next start or end of a span or change of the offset, or a day later: `nextShift` expects one change at most. */
function nextEdge({ zone, spans }: Timetable, ms: number): number {
  const at = timeOfWeek(zone, ms);
  const edges = spans.flatMap(({ fromMs, untilMs }) => [fromMs, untilMs]);
  // An edge at this very moment comes again in a week.
  const away = edges.map((edge) => (edge - at + WEEK_MS) % WEEK_MS || WEEK_MS);
  const next = ms + Math.min(...away, DAY_MS);
  return nextShift(zone, ms, next) ?? next;
}

function timeOfWeek(zone: string, ms: number): number {
  return weekTimeOf(localTimeAt(zone, ms));
}

function weekTimeOf(localMs: number): number {
  return (((localMs + MONDAY_MS) % WEEK_MS) + WEEK_MS) % WEEK_MS;
}

/** Creating a format takes longer than using it. */
const formats = new Map<string, Intl.DateTimeFormat>();

/** Whether this machine knows the zone, by an IANA name such as `Europe/Berlin`. */
export function isTimeZone(zone: string): boolean {
  try {
    formatFor(zone);
    return true;
  } catch {
    return false;
  }
}

/** The local time at an instant. */
export function localTimeAt(zone: string, ms: number): number {
  return ms + offsetAt(zone, ms);
}

/** The first instant with this local time; for a skipped time the end of the gap. */
export function firstInstantOf(zone: string, localMs: number): number {
  // The instant is less than a day from `localMs` as UTC, so these are the offsets before and after a change around it.
  const before = localMs - offsetAt(zone, localMs - DAY_MS);
  if (localTimeAt(zone, before) === localMs) return before;
  const after = localMs - offsetAt(zone, localMs + DAY_MS);
  if (localTimeAt(zone, after) === localMs) return after;
  return nextShift(zone, Math.min(before, after), Math.max(before, after)) ?? before;
}

/** The first instant after `fromMs`, at most `toMs`, with another offset. At most one change may lie between. */
export function nextShift(zone: string, fromMs: number, toMs: number): number | undefined {
  const offset = offsetAt(zone, fromMs);
  if (offsetAt(zone, toMs) === offset) return undefined;
  let [same, other] = [fromMs, toMs];
  while (other - same > 1) {
    const middle = Math.floor((same + other) / 2);
    if (offsetAt(zone, middle) === offset) same = middle;
    else other = middle;
  }
  return other;
}

/** How far local time is ahead of UTC, in milliseconds. */
function offsetAt(zone: string, ms: number): number {
  const name = formatFor(zone)
    .formatToParts(ms)
    .find(({ type }) => type === "timeZoneName")?.value;
  // `GMT`, `GMT+05:30`; with seconds only for dates long past.
  const [, sign, hours, minutes, seconds] = /([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(name ?? "") ?? [];
  const ahead = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60 + Number(seconds ?? 0);
  return (sign === "-" ? -ahead : ahead) * 1_000;
}

function formatFor(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  formats.set(zone, made);
  return made;
}
