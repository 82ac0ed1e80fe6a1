/**
 * A queue of download jobs for each service, and its limit, which applies in all processes. Other processes may use queues
 * of services that this process does not know.
 */
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type JobsOptions, Queue, type QueueOptions, Worker } from "bullmq";
import type { Services } from "../model/job.ts";
import type { RedisClient } from "./bullmq-connection.ts";

export class ServiceQueues<Data> {
  readonly #options: QueueOptions;
  readonly #services: Services;
  readonly #onError: (error: unknown) => void;
  readonly #queues = new Map<string, Queue<Data>>();

  constructor(options: QueueOptions, services: Services, onError: (error: unknown) => void) {
    this.#onError = onError;
    this.#options = options;
    this.#services = services;
  }

  all(): Queue<Data>[] {
    return [...this.#queues.values()];
  }

  /** `undefined` if the mailbox is not configured. */
  of(mailbox: string): Queue<Data> | undefined {
    const service = this.#services().get(mailbox);
    return service === undefined ? undefined : this.ofService(service);
  }

  ofService(service: string): Queue<Data> | undefined {
    return this.#queues.get(downloadQueueOf(service));
  }

  /** Opens the queues of new services, and returns them. */
  open(): Queue<Data>[] {
    const names = [...new Set(this.#services().values())].map(downloadQueueOf);
    const missing = names.filter((name) => !this.#queues.has(name));
    const opened = missing.map((name) => openQueue<Data>(name, this.#options, this.#onError));
    for (const queue of opened) this.#queues.set(queue.name, queue);
    return opened;
  }
}

/** `onError` gets every error of the queue. */
export function openQueue<Data>(
  name: string,
  options: QueueOptions,
  onError: (error: unknown) => void,
): Queue<Data> {
  const queue = new Queue<Data>(name, options);
  queue.on("error", onError);
  return queue;
}

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
  return `download-${createHash("sha256").update(service).digest("hex").slice(0, 16)}`;
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
