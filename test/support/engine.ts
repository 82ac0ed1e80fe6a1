/** Some flow tests run twice, once with each queue: which one it is now. */
import type { Settings } from "../../src/config/settings.ts";
import { startRedis } from "./redis.ts";
import { redisQueue } from "./settings.ts";

/** Set by the project that runs them on Redis. */
export const isOnRedis = process.env["INLET_TEST_QUEUE"] === "redis";

/** A lock so short that a test need not wait long for the jobs of a daemon that was killed. */
const LOCK_MS = 500;

export async function queueOfTest(): Promise<Settings["queue"]> {
  return isOnRedis ? redisQueue((await startRedis()).url, LOCK_MS) : "embedded";
}
