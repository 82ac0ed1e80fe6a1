/** Sizes, times and counts as people read them. */

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DAY = 86_400;

export function formatBytes(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
  const value = bytes / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[power]}`;
}

export function formatSeconds(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 2 * DAY) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / DAY)} days`;
}

/** `3 min 20 s ago`, or `in 3 min 20 s`. */
export function formatWhen(iso: string, nowMs: number): string {
  const seconds = Math.round((Date.parse(iso) - nowMs) / 1000);
  if (seconds === 0) return "now";
  return seconds < 0 ? `${formatSeconds(-seconds)} ago` : `in ${formatSeconds(seconds)}`;
}

export function formatCount(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
