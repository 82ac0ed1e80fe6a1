/** What all processes do in the same way with the queue of a service: its name, its jobs and its limit. */
import { hash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type JobsOptions, type Queue, Worker } from "bullmq";
import type { RedisClient } from "./bullmq-connection.ts";

/** A job younger than this may be on its way into its list. */
const YOUNG_MS = 60_000;

/**
 * Does nothing if the job waits or runs. A script that Redis refused half-way may have left the job in no list, where it
 * would stay for ever: such a job is replaced.
 */
export async function addJob<Data>(
  queue: Queue<Data>,
  client: RedisClient,
  name: string,
  data: Data,
  options: JobsOptions & { readonly jobId: string },
): Promise<void> {
  if ((await queue.getJobState(options.jobId)) !== "unknown") return;
  const key = queue.toKey(options.jobId);
  const type = await client.type(key);
  if (type !== "none") {
    const addedMs = type === "hash" ? Number(await client.hget(key, "timestamp")) : 0;
    if (Math.abs(Date.now() - addedMs) < YOUNG_MS) return;
    await client.del(key);
  }
  await (queue as Queue).add(name, data, options);
}

/** The same name in every process. */
export function downloadQueueOf(service: string): string {
  return `download-${hash("sha256", service).slice(0, 16)}`;
}

/** A worker whose fetch of a job failed waits before the next one. */
const FAILED_PAUSE_MS = 1_000;

/** BullMQ fetches the next job without a pause, even if Redis refuses every fetch. */
export class PausingWorker<Data> extends Worker<Data> {
  protected override async moveToActive(token: string, name?: string) {
    try {
      return await super.moveToActive(token, name);
    } catch (error) {
      await pause(FAILED_PAUSE_MS);
      throw error;
    }
  }
}

/** BullMQ applies rate limits only to workers with a limiter. This one never limits by itself. */
export const LIMITER = { max: 1_000_000_000, duration: 1_000 };
/** A longer limit in Redis is not ours. */
const LONGEST_LIMIT_MS = 3_600_000;

export async function countWaiting(queue: Queue): Promise<number> {
  return (await isLimited(queue)) ? 0 : queue.getJobCountByTypes("wait", "prioritized");
}

export async function isLimited(queue: Queue): Promise<boolean> {
  const ttlMs = await queue.getRateLimitTtl(LIMITER.max);
  return ttlMs > 0 && ttlMs <= LONGEST_LIMIT_MS;
}

/** Limits a service in all processes. Never shortens a limit. After a longer limit the service refuses one more job. */
export async function limit(queue: Queue, limitMs: number): Promise<void> {
  const ms = Math.ceil(Math.min(limitMs, LONGEST_LIMIT_MS));
  if ((await queue.getRateLimitTtl(LIMITER.max)) < ms) await queue.rateLimit(ms);
}
