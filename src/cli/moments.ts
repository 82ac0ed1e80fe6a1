/** Points in time as people give them on the command line, and as they read them. */
import { InvalidArgumentError } from "commander";

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;
const MOMENT = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/;

/** `7d` (so long ago), `2026-03-01` (where that day begins here), `2026-03-01T14:30`. */
export function parseSince(text: string): number {
  return parseMoment(text, 0);
}

/** The same, but a day counts to its end. */
export function parseUntil(text: string): number {
  return parseMoment(text, 1);
}

/** `2026-03-01 14:30:07`, by the clock of this machine. */
export function formatMoment(iso: string): string {
  const at = new Date(iso);
  const pad = (number: number) => String(number).padStart(2, "0");
  const day = [at.getFullYear(), pad(at.getMonth() + 1), pad(at.getDate())].join("-");
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(pad).join(":")}`;
}

function parseMoment(text: string, daysAfter: number): number {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  if (unit !== undefined) return Date.now() - Number(count) * (UNIT_MS[unit] ?? 0);
  const [, year, month, day] = DAY.exec(text) ?? [];
  const ms =
    day === undefined
      ? Date.parse(MOMENT.test(text) ? text.replace(" ", "T") : "")
      : dayOf(Number(year), Number(month), Number(day), daysAfter);
  if (!Number.isFinite(ms)) {
    throw new InvalidArgumentError("It must be so long ago (30m, 12h, 7d, 4w) or a date (2026-03-01).");
  }
  return ms;
}

/** Not a number for a day that no calendar has. */
function dayOf(year: number, month: number, day: number, daysAfter: number): number {
  const at = new Date(year, month - 1, day);
  const isReal = at.getMonth() === month - 1 && at.getDate() === day;
  return isReal ? new Date(year, month - 1, day + daysAfter).getTime() : Number.NaN;
}
