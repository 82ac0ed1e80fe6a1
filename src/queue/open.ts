/** Opens the engine that the configuration asks for. */
import type { Outage } from "../base/outage.ts";
import type { SecretSource } from "../base/secret.ts";
import type { Services } from "../model/job.ts";
import type { RedisSettings } from "./bullmq-connection.ts";
import { createEmbeddedQueue } from "./embedded.ts";
import type { JobQueue } from "./port.ts";

/** A queue on Redis, its secrets not read yet. */
export interface RedisQueue extends Omit<RedisSettings, "password" | "sentinelPassword"> {
  readonly password: SecretSource | undefined;
  readonly sentinelPassword: SecretSource | undefined;
  readonly role: "all" | "worker" | "scheduler";
  readonly lockMs: number;
}

export interface QueueOptions {
  readonly places: number;
  /** `once` schedules nothing, and does not wait for a queue that cannot be reached. */
  readonly mode: "run" | "once";
  readonly services: Services;
  readonly outage: Outage;
  /** Redis may forget jobs by itself: hears its policy. */
  onForgetful(policy: string): void;
  readonly signal: AbortSignal;
}

/** Throws `QUEUE_UNREACHABLE` or `QUEUE_UNSUITABLE`. Redis's client is loaded only where it is used. */
export async function openQueue(queue: "embedded" | RedisQueue, options: QueueOptions): Promise<JobQueue> {
  const { places, mode, signal, onForgetful, services, outage } = options;
  if (queue === "embedded") return createEmbeddedQueue({ places, services, random: Math.random });
  const { openBullQueue } = await import("./bullmq.ts");
  const { lockMs, role } = queue;
  const opened = await openBullQueue({
    redis: await readRedisSecrets(queue, signal),
    places,
    role: mode === "once" ? "worker" : role,
    patient: mode === "run",
    lockMs,
    services,
    outage,
    signal,
  });
  const { evictionPolicy } = opened.facts;
  if (evictionPolicy !== "noeviction") onForgetful(evictionPolicy);
  return opened;
}

/** Throws `SECRET_UNREADABLE`. */
export async function readRedisSecrets(queue: RedisQueue, signal: AbortSignal): Promise<RedisSettings> {
  const { password, sentinelPassword, role, lockMs, ...redis } = queue;
  const read = async (source: SecretSource | undefined) => (await source?.read(signal))?.reveal();
  return { ...redis, password: await read(password), sentinelPassword: await read(sentinelPassword) };
}
