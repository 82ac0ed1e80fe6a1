/** The queue of one service on Redis: its name, its jobs, its workers and its limit, the same in every process. */
import { hash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type Queue, Worker } from "bullmq";
import * as v from "valibot";
import type { RedisClient } from "./bullmq-connection.ts";
import { LONGEST_JOB_LIMIT_MS } from "./turns.ts";

/** All that Redis holds about a transfer. It is validated when read, and never used as a path. */
export const JobShape = v.object({ mailbox: v.string(), trackingId: v.string() });
export type JobData = Readonly<v.InferOutput<typeof JobShape>>;

export interface NewJob {
  readonly key: string;
  readonly data: JobData;
  readonly priority: number;
}

/** Of BullMQ's set of delayed jobs. */
const SCORES_PER_MS = 0x1000;
/** A job younger than this may be on its way into its list. */
const YOUNG_MS = 60_000;

/**
 * Does nothing if the job waits or runs. A script that Redis refused half-way may have left the job in no list, where it
 * would stay for ever: such a job is replaced.
 */
export async function addJob(
  queue: Queue<JobData>,
  client: RedisClient,
  { key, data, priority }: NewJob,
): Promise<void> {
  const state = await queue.getJobState(key);
  if (state === "delayed") await endWrongDelay(queue, client, key);
  if (state !== "unknown") return;
  const redisKey = queue.toKey(key);
  const type = await client.type(redisKey);
  if (type !== "none") {
    const addedMs = type === "hash" ? Number(await client.hget(redisKey, "timestamp")) : 0;
    if (Math.abs(Date.now() - addedMs) < YOUNG_MS) return;
    await client.del(redisKey);
  }
  await queue.add("download", data, { jobId: key, priority });
}

/** BullMQ keeps the ends of delays by the wall clock. Ends a delay that is longer than it was meant to: the clock was set back. */
async function endWrongDelay(queue: Queue<JobData>, client: RedisClient, key: string): Promise<void> {
  const [job, score] = await Promise.all([queue.getJob(key), client.zscore(queue.toKey("delayed"), key)]);
  const dueMs = Number(score) / SCORES_PER_MS;
  if (job !== undefined && dueMs - Date.now() > job.delay + YOUNG_MS) await job.promote();
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

/** BullMQ applies rate limits only to workers with a limiter. This limiter never begins a limit by itself. */
export const LIMITER = { max: 1_000_000_000, duration: 1_000 };
export async function countWaiting(queue: Queue): Promise<number> {
  return (await isLimited(queue)) ? 0 : queue.getJobCountByTypes("wait", "prioritized");
}

export async function isLimited(queue: Queue): Promise<boolean> {
  const ttlMs = await queue.getRateLimitTtl(LIMITER.max);
  // A limit that lasts longer was not set by Inlet.
  return ttlMs > 0 && ttlMs <= LONGEST_JOB_LIMIT_MS;
}

/** Limits a service in all processes. 0 ends a limit; any other time never shortens one. */
export async function limit(queue: Queue, limitMs: number): Promise<void> {
  if (limitMs <= 0) await queue.removeRateLimitKey();
  else if ((await queue.getRateLimitTtl(LIMITER.max)) < limitMs) await queue.rateLimit(Math.ceil(limitMs));
}
