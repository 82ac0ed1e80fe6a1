/** The queue of flow tests that run twice, once with each engine. */
import type { Settings } from "../../src/config/settings.ts";
import { startRedis } from "./redis.ts";
import { redisQueue } from "./settings.ts";

/** Set by the vitest project that runs them on Redis. */
export const isOnRedis = process.env["INLET_TEST_QUEUE"] === "redis";

/** Longer than a busy machine pauses a process: after that, another run of the job would be right. */
const LOCK_MS = 120_000;

export async function queueOfTest(): Promise<Settings["queue"]> {
  return isOnRedis ? redisQueue((await startRedis()).url, LOCK_MS) : "embedded";
}
