/** Opens the configured engine. */

import type { Outage } from "../base/outage.ts";
import { random } from "../base/random.ts";
import type { SecretSource } from "../base/secret.ts";
import type { Services } from "../model/job.ts";
import type { RedisSettings } from "./bullmq-connection.ts";
import { createEmbeddedQueue } from "./embedded.ts";
import type { JobQueue } from "./port.ts";

/** A queue on Redis whose secrets are not read yet. */
export interface RedisQueue extends Omit<RedisSettings, "password" | "sentinelPassword"> {
  readonly password: SecretSource | undefined;
  readonly sentinelPassword: SecretSource | undefined;
  readonly role: "all" | "worker" | "scheduler";
  readonly lockMs: number;
}

export interface QueueOptions {
  /** Downloads at once, as configured now. A change applies at the next `schedule`. */
  slots(): number;
  /** `once` schedules nothing, and does not wait for an unreachable Redis. */
  readonly mode: "run" | "once";
  readonly services: Services;
  /** Whether jobs may go on without their slot, as configured now. */
  mayFreeSlots(): boolean;
  readonly outage: Outage;
  /** Called once for each key in Redis whose value would have stopped work. */
  onValueRemoved(key: string): void;
  /** Called when the eviction policy lets Redis drop jobs. */
  onEvicting(policy: string): void;
  readonly signal: AbortSignal;
}

/** Throws `SECRET_UNREADABLE`. BullMQ and ioredis are loaded only when needed. */
export async function openQueue(queue: "embedded" | RedisQueue, options: QueueOptions): Promise<JobQueue> {
  const { slots, mode, signal, onEvicting, onValueRemoved, services, mayFreeSlots, outage } = options;
  if (queue === "embedded") return createEmbeddedQueue({ slots, services, random });
  const { openBullQueue } = await import("./bullmq.ts");
  const { lockMs, role } = queue;
  return openBullQueue({
    redis: await readRedisSecrets(queue, signal),
    slots,
    role: mode === "once" ? "worker" : role,
    waitForRedis: mode === "run",
    lockMs,
    services,
    mayFreeSlots,
    outage,
    onEvicting,
    onValueRemoved,
    signal,
  });
}

/** Throws `SECRET_UNREADABLE`. */
export async function readRedisSecrets(queue: RedisQueue, signal: AbortSignal): Promise<RedisSettings> {
  const { password, sentinelPassword, role, lockMs, ...redis } = queue;
  const read = async (source: SecretSource | undefined) => (await source?.read(signal))?.reveal();
  return { ...redis, password: await read(password), sentinelPassword: await read(sentinelPassword) };
}
