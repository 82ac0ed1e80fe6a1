/** Sizes, times and counts as people read and write them, and untrusted text made harmless. */

import { localTimeAt } from "./timetable.ts";

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DAY_SECONDS = 86_400;

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return formatCount(bytes, "byte", "bytes");
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
  const value = bytes / 1024 ** power;
  return `${value.toFixed(value < 10 ? 1 : 0)} ${UNITS[power]}`;
}

export function formatSeconds(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 2 * DAY_SECONDS) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / DAY_SECONDS)} days`;
}

/** A time in ISO 8601; `undefined` for a missing one. */
export function isoOf<Time extends number | undefined>(ms: Time) {
  return (ms === undefined ? undefined : new Date(ms).toISOString()) as Time extends number
    ? string
    : undefined;
}

/** For sorting, by the characters' codes. */
export function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** `3 min 20 s ago`, or `in 3 min 20 s`. */
export function formatWhen(iso: string, nowMs: number): string {
  const seconds = Math.round((Date.parse(iso) - nowMs) / 1000);
  if (seconds === 0) return "now";
  return seconds < 0 ? `${formatSeconds(-seconds)} ago` : `in ${formatSeconds(seconds)}`;
}

/** As `formatWhen`, for a planned time: `now` once it is past. */
export function formatDue(iso: string, nowMs: number): string {
  return Date.parse(iso) <= nowMs ? "now" : formatWhen(iso, nowMs);
}

const MAX_DATE_MS = 8.64e15;

/** `2026-03-01 14:30:07` in a time zone; without one, in the machine's own. */
export function formatMoment(iso: string, zone: string | undefined): string {
  const ms = Date.parse(iso);
  if (Number.isNaN(ms)) return iso;
  const localMs = zone === undefined ? ms - new Date(ms).getTimezoneOffset() * 60_000 : localTimeAt(zone, ms);
  return new Date(Math.min(localMs, MAX_DATE_MS)).toISOString().slice(0, 19).replace("T", " ");
}

/** The name of the zone in which `formatMoment` writes. */
export function zoneName(zone: string | undefined): string {
  return zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone ?? "local time";
}

/** Rewrites the UTC times in one of our own sentences as `formatMoment` does. */
export function localizeTimes(text: string, zone: string | undefined): string {
  return text.replace(UTC_TIME, (iso) => formatMoment(iso, zone));
}

const UTC_TIME = /(?<=^|\s)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?=$|[\s,.])/g;

export function formatCount(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** "3 files, 1.2 MiB", as far as it is known. */
export function formatSize(known: Partial<Record<"files" | "bytes", number | null | undefined>>): string {
  const { files, bytes } = known;
  const count = files != null && formatCount(files, "file", "files");
  const size = bytes != null && formatBytes(bytes);
  return [count, size].filter(Boolean).join(", ");
}

export const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;
const MOMENT = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/;

/**
 * Parses `7d` (before now), `2026-03-01` (the start of that day in local time, or `daysAfter` days later), and
 * `2026-03-01T14:30`. `undefined` for anything else.
 */
export function parseMoment(text: string, nowMs: number, daysAfter = 0): number | undefined {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  if (unit !== undefined) return nowMs - Number(count) * (UNIT_MS[unit] ?? 0);
  const [, year, month, day] = DAY.exec(text) ?? [];
  if (day !== undefined) return startOfDay(Number(year), Number(month), Number(day), daysAfter);
  const ms = MOMENT.test(text) ? Date.parse(text.replace(" ", "T")) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** `undefined` for a day that does not exist. */
function startOfDay(year: number, month: number, day: number, daysAfter: number): number | undefined {
  const at = new Date(year, month - 1, day);
  const isReal = at.getMonth() === month - 1 && at.getDate() === day;
  return isReal ? new Date(year, month - 1, day + daysAfter).getTime() : undefined;
}

/** The lines of a program's output, with tabs as spaces. */
export function outputLines(output: string): string[] {
  return output.replaceAll("\t", "  ").split("\n");
}

/**
 * Escapes every character of a JSON text that could move a cursor, hide or reorder text in a terminal. JSON itself
 * escapes the control characters below a space.
 */
export function escapeJson(json: string): string {
  return json.replace(/[\u007f-\u009f\p{Cf}\u2028\u2029]/gu, escapeUnits);
}

/** As JSON escapes: one escape per UTF-16 unit. */
function escapeUnits(character: string): string {
  return character.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Text from outside: spells out every character that could move a cursor, hide or reorder text. */
export function printable(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Text from senders and servers, for messages to people: as `printable`, and with links that cannot be clicked. */
export function neutralize(text: string): string {
  return printable(text).replaceAll("://", "[:]//");
}
