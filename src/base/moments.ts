/** Points in time as people write them: so long ago, a day, or a moment. */

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;
const MOMENT = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/;

/**
 * `7d` (so long before now), `2026-03-01` (where that day begins here, or so many days after that), `2026-03-01T14:30`.
 * `undefined` for anything else.
 */
export function parseMoment(text: string, nowMs: number, daysAfter = 0): number | undefined {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  if (unit !== undefined) return nowMs - Number(count) * (UNIT_MS[unit] ?? 0);
  const [, year, month, day] = DAY.exec(text) ?? [];
  const ms =
    day === undefined
      ? Date.parse(MOMENT.test(text) ? text.replace(" ", "T") : "")
      : dayOf(Number(year), Number(month), Number(day), daysAfter);
  return Number.isFinite(ms) ? ms : undefined;
}

/** Not a number for a day that no calendar has. */
function dayOf(year: number, month: number, day: number, daysAfter: number): number {
  const at = new Date(year, month - 1, day);
  const isReal = at.getMonth() === month - 1 && at.getDate() === day;
  return isReal ? new Date(year, month - 1, day + daysAfter).getTime() : Number.NaN;
}
