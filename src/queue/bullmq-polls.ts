/** Turns of polls in Redis. Without its answer, no mailbox is polled, and Redis is asked again after a pause. */
import { unlessStopped } from "../base/deadline.ts";
import { DAY_MS } from "../base/timetable.ts";
import type { RedisClient } from "./bullmq-connection.ts";
import type { RedisWatch, WatchOptions } from "./bullmq-watch.ts";
import type { PollTurns } from "./polls.ts";
import type { EngineOptions } from "./port.ts";
import { Turns, type Values } from "./turns.ts";

/** A key that lasts longer is not ours. */
const LONGEST_WAIT_MS = DAY_MS;
const ANSWER_MS = 2_000;
const RETRY_MS = 1_000;

export function sharedTurns(
  options: EngineOptions & WatchOptions,
  client: RedisClient,
  watch: RedisWatch,
): PollTurns {
  const turns = new Turns(valuesIn(client, options.redis.prefix), options.services, true);
  /** Returns `undefined` if Redis does not answer. */
  const ask = async <Result>(work: () => Promise<Result>): Promise<Result | undefined> => {
    if (client.status !== "ready") return undefined;
    try {
      return await unlessStopped(work(), 0, AbortSignal.timeout(ANSWER_MS));
    } catch (error) {
      watch.report(error);
      return undefined;
    }
  };
  return {
    take: async (poll) => (await ask(() => turns.take(poll))) ?? { waitMs: RETRY_MS },
    // If this fails, the mailbox is polled at its interval.
    end: (...call) => ask(() => turns.end(...call)),
    ask: (...call) => ask(() => turns.ask(...call)),
    reset: (...call) => watch.reach(() => turns.reset(...call)),
    endRests: () => watch.reach(() => turns.endRests()),
  };
}

function valuesIn(client: RedisClient, prefix: string): Values {
  const nameOf = (key: string) => `${prefix}:${key}`;
  const ttlMs = async (key: string) => {
    const ms = await client.pttl(nameOf(key));
    return ms <= LONGEST_WAIT_MS ? ms : 0;
  };
  return {
    ttlMs,
    get: async (key) => ((await ttlMs(key)) > 0 ? ((await client.get(nameOf(key))) ?? undefined) : undefined),
    async set(key, value, ms, isNew = false) {
      const name = nameOf(key);
      const px = Math.ceil(Math.min(ms, LONGEST_WAIT_MS));
      if (!isNew) return (await client.set(name, value, "PX", px)) === "OK";
      if ((await client.set(name, value, "PX", px, "NX")) === "OK") return true;
      // It has just expired, or is not ours.
      if ((await ttlMs(key)) <= 0) await client.del(name);
      return false;
    },
    remove: async (keys) => (await client.del(keys.map(nameOf))) > 0,
  };
}
