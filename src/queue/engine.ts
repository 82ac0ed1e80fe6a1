/** Opens the configured engine. */

import { random } from "../base/random.ts";
import type { SecretSource } from "../base/secret.ts";
import type { RedisSettings } from "./bullmq-connection.ts";
import { createEmbeddedQueue } from "./embedded.ts";
import type { EngineOptions, JobQueue } from "./port.ts";

/** A queue on Redis whose secrets are not read yet. */
export interface RedisQueue extends Omit<RedisSettings, "password" | "sentinelPassword"> {
  readonly password: SecretSource | undefined;
  readonly sentinelPassword: SecretSource | undefined;
  readonly role: "all" | "worker" | "scheduler";
  readonly lockMs: number;
}

export interface QueueOptions extends EngineOptions {
  /** In `once`, nothing is scheduled, and an unreachable Redis is not waited for. */
  readonly mode: "run" | "once";
}

/** Throws `SECRET_UNREADABLE`. BullMQ and ioredis are loaded only when needed. */
export async function openQueue(queue: "embedded" | RedisQueue, options: QueueOptions): Promise<JobQueue> {
  if (queue === "embedded") return createEmbeddedQueue({ ...options, random });
  const { openBullQueue } = await import("./bullmq.ts");
  const redis = await readRedisSecrets(queue, options.signal);
  const isOnce = options.mode === "once";
  const role = isOnce ? "worker" : queue.role;
  return openBullQueue({ ...options, redis, role, waitForRedis: !isOnce, lockMs: queue.lockMs });
}

/** Throws `SECRET_UNREADABLE`. */
export async function readRedisSecrets(queue: RedisQueue, signal: AbortSignal): Promise<RedisSettings> {
  const { password, sentinelPassword, role, lockMs, ...redis } = queue;
  const read = async (source: SecretSource | undefined) => (await source?.read(signal))?.reveal();
  return { ...redis, password: await read(password), sentinelPassword: await read(sentinelPassword) };
}
