/** How long to wait before the next attempt. */
import { LONGEST_MS } from "./waits.ts";

const FIRST_MS = 5_000;
const LONGEST_BACKOFF_MS = 60 * 60 * 1000;
const JITTER = 0.2;

/** Doubles with each attempt, with jitter. `attempt` counts from 1; `random` is between 0 and 1. */
export function backoffMs(attempt: number, random: number, firstMs: number = FIRST_MS): number {
  const base = Math.min(firstMs * 2 ** Math.min(attempt - 1, 30), LONGEST_BACKOFF_MS);
  return Math.round(base * (1 - JITTER + 2 * JITTER * random));
}

/** How long to rest, as far as it was asked for. Whoever asked for more is asked again after an hour. */
export function restMs({ retryAfterMs = 0 }: { readonly retryAfterMs?: number | undefined }): number {
  return Math.min(retryAfterMs, LONGEST_MS.rest);
}

/** Parses a `Retry-After` header, which holds seconds or a date. `undefined` for any other text. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined || value.trim() === "") return undefined;
  const seconds = Number(value);
  const waitMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - nowMs;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), LONGEST_MS.lock);
}
