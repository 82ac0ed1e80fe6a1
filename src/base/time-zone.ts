/** What the clocks of a time zone show, and when. A time that clocks show is counted in milliseconds as if it were UTC. */

const DAY_MS = 86_400_000;

/** Made once each: that takes longer than using them. */
const formats = new Map<string, Intl.DateTimeFormat>();

/** Whether this machine knows the zone: an IANA name such as `Europe/Berlin`. */
export function isTimeZone(zone: string): boolean {
  try {
    formatFor(zone);
    return true;
  } catch {
    return false;
  }
}

/** What the clocks show at an instant. */
export function clocksAt(zone: string, ms: number): number {
  return ms + offsetAt(zone, ms);
}

/** The first instant at which the clocks show that, or later where that time is skipped. */
export function firstInstantOf(zone: string, clockMs: number): number {
  // No zone is further from UTC than a day: these are what counts before and after a change of the clocks around it.
  const before = clockMs - offsetAt(zone, clockMs - DAY_MS);
  if (clocksAt(zone, before) === clockMs) return before;
  const after = clockMs - offsetAt(zone, clockMs + DAY_MS);
  if (clocksAt(zone, after) === clockMs) return after;
  return nextShift(zone, Math.min(before, after), Math.max(before, after)) ?? before;
}

/** The first instant after `fromMs`, at most `toMs`, from which the clocks are set differently. At most one may be between. */
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

/** How far the clocks are ahead of UTC. */
function offsetAt(zone: string, ms: number): number {
  const name = formatFor(zone)
    .formatToParts(ms)
    .find(({ type }) => type === "timeZoneName")?.value;
  // `GMT`, `GMT+05:30`; with seconds only for days long past.
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
