/** Durations, sizes, rates and permissions as people write them, turned into milliseconds, bytes and bits. */

/** What can be read, as the schema says it. Zero is no duration, and a size or mode cannot be negative. */
export const DURATION_PATTERN = "^(?=.*[1-9])[0-9]{1,9}(\\.[0-9]{1,3})?(ms|s|m|h)$";
export const LONG_DURATION_PATTERN = "^(?=.*[1-9])[0-9]{1,9}(\\.[0-9]{1,3})?(ms|s|m|h|d)$";
export const SIZE_PATTERN = "^[0-9]{1,15}$|^[0-9]{1,9}(\\.[0-9]{1,3})? ?([kKMGT]i?)?B$";
export const RATE_PATTERN = "^none$|^[0-9]{1,9}(\\.[0-9]{1,3})? ?([kKMGT]i?)?B/s$";
export const MODE_PATTERN = "^(0o?)?[0-7]{3}$";

/** Longer ones would overflow the timers of the runtime, and nobody means them. */
const LONGEST_DURATION_MS = 24 * 3_600_000;

const LONGEST_LONG_MS = 3_650 * 24 * 3_600_000;

const DURATION_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 24 * 3_600_000,
};
const DECIMAL = 1_000;
const BINARY = 1_024;
const POWERS = ["", "K", "M", "G", "T"];

/** `1.5s` → 1500. `undefined` for what is no duration, or longer than a day. */
export function parseDuration(text: string): number | undefined {
  return countTime(text, DURATION_PATTERN, LONGEST_DURATION_MS);
}

/** `7d` → 604800000: for what no timer waits for. `undefined` for what is no duration, or longer than ten years. */
export function parseLongDuration(text: string): number | undefined {
  return countTime(text, LONG_DURATION_PATTERN, LONGEST_LONG_MS);
}

function countTime(text: string, pattern: string, longestMs: number): number | undefined {
  if (!new RegExp(pattern, "u").test(text)) return undefined;
  const [, count = "", unit = ""] = /^([\d.]+)(\w+)$/.exec(text) ?? [];
  const durationMs = Math.max(1, Math.round(Number(count) * (DURATION_MS[unit] ?? Number.NaN)));
  return durationMs <= longestMs ? durationMs : undefined;
}

/** `10MiB` → 10485760, `1GB` → 1000000000, `512` → 512. `undefined` for what is no size, or cannot be counted. */
export function parseSize(text: string): number | undefined {
  if (!new RegExp(SIZE_PATTERN, "u").test(text)) return undefined;
  const [, count = "", prefix = "", binary] = /^([\d.]+) ?([kKMGT]?)(i?)B?$/.exec(text) ?? [];
  const bytes = Math.round(
    Number(count) * (binary === "i" ? BINARY : DECIMAL) ** POWERS.indexOf(prefix.toUpperCase()),
  );
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** `10MiB/s` → 10485760, in bytes a second. `undefined` for what is no rate, or cannot be counted. */
export function parseRate(text: string): number | undefined {
  return text.endsWith("B/s") ? parseSize(text.slice(0, -"/s".length)) : undefined;
}

/** `0640`, `640` or `0o640` → 0o640. `undefined` for what is not three octal digits. */
export function parseMode(text: string): number | undefined {
  if (!new RegExp(MODE_PATTERN, "u").test(text)) return undefined;
  return Number.parseInt(text.replace(/^0o/, ""), 8);
}
