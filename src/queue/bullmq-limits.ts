/** Limits of services, which apply to their downloads in all processes. */
import type { Queue } from "bullmq";

/** BullMQ applies rate limits only to workers with a limiter. This one never limits by itself. */
export const LIMITER = { max: 1_000_000_000, duration: 1_000 };
/** A longer limit in Redis is not ours. */
export const LONGEST_LIMIT_MS = 3_600_000;

export async function countWaiting(queue: Queue): Promise<number> {
  return (await isLimited(queue)) ? 0 : queue.getJobCountByTypes("wait", "prioritized");
}

export async function isLimited(queue: Queue): Promise<boolean> {
  return (await queue.getRateLimitTtl(LIMITER.max)) > 0;
}

/** Limits a service in all processes. Never shortens a limit. After a longer limit the service refuses one more job. */
export async function limit(queue: Queue, limitMs: number): Promise<void> {
  const ms = Math.ceil(Math.min(limitMs, LONGEST_LIMIT_MS));
  if ((await queue.getRateLimitTtl(LIMITER.max)) < ms) await queue.rateLimit(ms);
}
