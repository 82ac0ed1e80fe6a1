/** Durations, sizes, rates and permissions: their syntax, and their value in milliseconds, bytes and bits. */
import { UNIT_MS } from "../base/phrases.ts";
import { type Spot, showValue } from "./draft.ts";
import { READ, type SchemaNode } from "./schema-nodes.ts";

const NUMBER = "[0-9]{1,9}(\\.[0-9]{1,3})?";
/** A duration of zero is refused. */
const DURATION_PATTERN = `^(?=.*[1-9])${NUMBER}(ms|s|m|h)$`;
export const LONG_DURATION_PATTERN = `^(?=.*[1-9])${NUMBER}(ms|s|m|h|d)$`;
const SIZE_PATTERN = `^[0-9]{1,15}$|^${NUMBER} ?([kKMGT]i?)?B$`;
const MODE_PATTERN = "^(0o?)?[0-7]{3}$";

/** At most a day: the runtime's timers overflow after 24 days. */
export const DURATION = {
  type: "string",
  title: "a duration such as 250ms, 30s, 5m or 1h",
  pattern: DURATION_PATTERN,
  [READ]: (text: string, at: Spot) => upTo("24h", text, at) ?? 0,
} as const satisfies SchemaNode;

/** `undefined` for `forever`. */
export const LONG_DURATION = {
  type: "string",
  title: "forever, or a duration such as 30m, 12h or 7d",
  pattern: `^forever$|${LONG_DURATION_PATTERN}`,
  [READ]: (text: string, at: Spot) => (text === "forever" ? undefined : upTo(LONGEST, text, at)),
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
  pattern: `^none$|^${NUMBER} ?([kKMGT]i?)?B/s$`,
  [READ]: bytesFrom(1024, "is less than 1KiB/s"),
} as const satisfies SchemaNode;

export const MODE = {
  type: ["string", "integer"],
  title: 'an octal mode from "0000" to "0777", such as "0640"',
  pattern: MODE_PATTERN,
  minimum: 0,
  maximum: 0o777,
} as const satisfies SchemaNode;

const LONGEST = "3650d";

const DECIMAL = 1_000;
const BINARY = 1_024;
const POWERS = ["", "K", "M", "G", "T"];

function refuse(value: unknown, why: string, at: Spot): undefined {
  return at.refuse(`${showValue(value)} ${why}`);
}

/** Returns the reader of a size or rate, in bytes; `undefined` for `none`. `tooSmall`: why less than `min` is refused. */
export function bytesFrom(min: number, tooSmall: string) {
  return (given: string | number, at: Spot): number | undefined => {
    if (given === "none") return undefined;
    const bytes = parseSize(String(given).replace(/\/s$/, ""));
    if (bytes === undefined) return refuse(given, "is too large", at);
    return bytes < min ? refuse(given, tooSmall, at) : bytes;
  };
}

/** Returns the reader of permissions that must include these bits. A plain number is refused: YAML reads 640 as a decimal number. */
export function modeWith(bits: number, wrong: string) {
  return (given: string | number, at: Spot): number => {
    const mode = typeof given === "string" ? parseMode(given) : undefined;
    if (mode === undefined) refuse(given, 'may be octal or decimal: write it as "0640" or 0o640', at);
    else if ((mode & bits) !== bits) refuse(given, wrong, at);
    return mode ?? 0;
  };
}

/** `1.5s` → 1500. `undefined` for other texts, and for more than ten years. */
export function parseDuration(text: string): number | undefined {
  const durationMs = countMs(text) ?? Number.POSITIVE_INFINITY;
  return durationMs <= (countMs(LONGEST) ?? 0) ? durationMs : undefined;
}

/** Refuses a longer duration. */
function upTo(longest: string, text: string, at: Spot): number | undefined {
  const durationMs = countMs(text) ?? 0;
  return durationMs <= (countMs(longest) ?? 0) ? durationMs : refuse(text, `is longer than ${longest}`, at);
}

function countMs(text: string): number | undefined {
  if (!new RegExp(LONG_DURATION_PATTERN, "u").test(text)) return undefined;
  const [, count = "", unit = ""] = /^([\d.]+)(\w+)$/.exec(text) ?? [];
  return Math.max(1, Math.round(Number(count) * (UNIT_MS[unit] ?? Number.NaN)));
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

/** `0640`, `640` or `0o640` → 0o640. `undefined` for a text that is not three octal digits. */
export function parseMode(text: string): number | undefined {
  if (!new RegExp(MODE_PATTERN, "u").test(text)) return undefined;
  return Number.parseInt(text.replace(/^0o/, ""), 8);
}
