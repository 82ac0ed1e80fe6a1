/** Durations, sizes, rates and permissions: their syntax, and their value in milliseconds, bytes and bits. */
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { READ, type SchemaNode } from "./schema-nodes.ts";

/** A duration of zero is refused. */
const DURATION_PATTERN = "^(?=.*[1-9])[0-9]{1,9}(\\.[0-9]{1,3})?(ms|s|m|h)$";
export const LONG_DURATION_PATTERN = "^(?=.*[1-9])[0-9]{1,9}(\\.[0-9]{1,3})?(ms|s|m|h|d)$";
const SIZE_PATTERN = "^[0-9]{1,15}$|^[0-9]{1,9}(\\.[0-9]{1,3})? ?([kKMGT]i?)?B$";
const MODE_PATTERN = "^(0o?)?[0-7]{3}$";

export const DURATION = {
  type: "string",
  title: "a duration such as 250ms, 30s, 5m or 1h",
  pattern: DURATION_PATTERN,
  [READ]: readDuration,
} as const satisfies SchemaNode;

export const LONG_DURATION = {
  type: "string",
  title: "forever, or a duration such as 30m, 12h or 7d",
  pattern: `^forever$|${LONG_DURATION_PATTERN}`,
  [READ]: readLongDuration,
} as const satisfies SchemaNode;

export const SIZE = {
  type: ["string", "integer"],
  title: "a size such as 10MiB, 1GB or a number of bytes",
  pattern: SIZE_PATTERN,
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  [READ]: bytesFrom(0, ""),
} as const satisfies SchemaNode;

export const RATE = {
  type: "string",
  title: "none or a rate such as 10MiB/s",
  pattern: "^none$|^[0-9]{1,9}(\\.[0-9]{1,3})? ?([kKMGT]i?)?B/s$",
  [READ]: bytesFrom(1024, "less than 1KiB/s"),
} as const satisfies SchemaNode;

export const MODE = {
  type: ["string", "integer"],
  title: 'an octal mode from "0000" to "0777", such as "0640"',
  pattern: MODE_PATTERN,
  minimum: 0,
  maximum: 0o777,
} as const satisfies SchemaNode;

const HOUR_MS = 3_600_000;

/** One day. The runtime's timers overflow after 24 days. */
const MAX_DURATION_MS = 24 * HOUR_MS;
const MAX_LONG_DURATION_MS = 3_650 * 24 * HOUR_MS;

const DURATION_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: HOUR_MS,
  d: 24 * HOUR_MS,
};
const DECIMAL = 1_000;
const BINARY = 1_024;
const POWERS = ["", "K", "M", "G", "T"];

/** In milliseconds. */
function readDuration(text: string, path: KeyPath, { problems }: Draft): number {
  const durationMs = parseDuration(text);
  if (durationMs === undefined) problems.add(path, `${showValue(text)} is longer than 24h`);
  return durationMs ?? 0;
}

/** In milliseconds; `undefined` for `forever`. */
function readLongDuration(text: string, path: KeyPath, { problems }: Draft): number | undefined {
  if (text === "forever") return undefined;
  const durationMs = parseLongDuration(text);
  if (durationMs === undefined) problems.add(path, `${showValue(text)} is longer than 3650d`);
  return durationMs;
}

/** Reads a size, or a rate: in bytes, and `undefined` for `none`. `tooSmall`: what is said of less than `min`. */
export function bytesFrom(min: number, tooSmall: string) {
  return (given: string | number, path: KeyPath, { problems }: Draft): number | undefined => {
    if (given === "none") return undefined;
    const text = String(given);
    const bytes = text.endsWith("/s") ? parseRate(text) : parseSize(text);
    if (bytes !== undefined && bytes >= min) return bytes;
    problems.add(path, `${showValue(given)} is ${bytes === undefined ? "too large" : tooSmall}`);
    return undefined;
  };
}

/** Reads permissions that have to have these bits. A plain number is refused: YAML reads 640 as a decimal number. */
export function modeWith(bits: number, wrong: string) {
  return (given: string | number, path: KeyPath, { problems }: Draft): number => {
    const mode = typeof given === "string" ? parseMode(given) : undefined;
    const ambiguous = 'may be octal or decimal: write it as "0640" or 0o640';
    if (mode === undefined) problems.add(path, `${showValue(given)} ${ambiguous}`);
    else if ((mode & bits) !== bits) problems.add(path, `${showValue(given)} ${wrong}`);
    return mode ?? 0;
  };
}

/** `1.5s` → 1500. `undefined` for other texts, and for more than a day. */
export function parseDuration(text: string): number | undefined {
  return countTime(text, DURATION_PATTERN, MAX_DURATION_MS);
}

/** `7d` → 604800000, for durations without a timer. `undefined` for other texts, and for more than ten years. */
export function parseLongDuration(text: string): number | undefined {
  return countTime(text, LONG_DURATION_PATTERN, MAX_LONG_DURATION_MS);
}

function countTime(text: string, pattern: string, maxMs: number): number | undefined {
  if (!new RegExp(pattern, "u").test(text)) return undefined;
  const [, count = "", unit = ""] = /^([\d.]+)(\w+)$/.exec(text) ?? [];
  const durationMs = Math.max(1, Math.round(Number(count) * (DURATION_MS[unit] ?? Number.NaN)));
  return durationMs <= maxMs ? durationMs : undefined;
}

/** `10MiB` → 10485760, `1GB` → 1000000000, `512` → 512. `undefined` for other texts, and above the safe integers. */
export function parseSize(text: string): number | undefined {
  if (!new RegExp(SIZE_PATTERN, "u").test(text)) return undefined;
  const [, count = "", prefix = "", binary] = /^([\d.]+) ?([kKMGT]?)(i?)B?$/.exec(text) ?? [];
  const bytes = Math.round(
    Number(count) * (binary === "i" ? BINARY : DECIMAL) ** POWERS.indexOf(prefix.toUpperCase()),
  );
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** `10MiB/s` → 10485760 bytes a second. `undefined` for other texts, and above the safe integers. */
export function parseRate(text: string): number | undefined {
  return text.endsWith("B/s") ? parseSize(text.slice(0, -"/s".length)) : undefined;
}

/** `0640`, `640` or `0o640` → 0o640. `undefined` for a text that is not three octal digits. */
export function parseMode(text: string): number | undefined {
  if (!new RegExp(MODE_PATTERN, "u").test(text)) return undefined;
  return Number.parseInt(text.replace(/^0o/, ""), 8);
}
