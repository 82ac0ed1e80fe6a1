/**
 * Removes values from Redis that would stop a queue for ever, such as a key of another type or a limit of a thousand years.
 * Nothing is lost with them: the next polls add missing jobs.
 */
import type { Queue } from "bullmq";
import type { RedisClient } from "./bullmq-connection.ts";
import { LONGEST_LIMIT_MS } from "./bullmq-services.ts";

/** The keys of a queue, by type. */
const KEYS = {
  list: ["wait", "active", "paused"],
  zset: ["prioritized", "delayed", "marker", "completed", "failed", "waiting-children", "repeat"],
  set: ["stalled", "claims"],
  hash: ["meta", "deferred"],
  stream: ["events"],
  string: ["id", "pc", "limiter", "stalled-check"],
} as const;
/** Counters must not overflow. */
const COUNT = /^\d{1,16}$/;
/** Settings of a queue that would override ours. */
const FOREIGN_SETTINGS = ["paused", "concurrency", "max", "duration"] as const;
/** Longer than any wait for quiet hours or for a lock. */
const LONGEST_DELAY_MS = 8 * 24 * 3_600_000;
/** BullMQ multiplies times by this in the scores of delayed jobs. */
const SCORE_PER_MS = 4_096;
const JOBS_AT_ONCE = 100;
/** Strings without an expiry, or with a late one, would stop downloads, or the recovery of jobs. */
const EXPIRING: ReadonlySet<string> = new Set(["limiter", "stalled-check"]);
const MAX_EVENTS = "opts.maxLenEvents";
const JSON_FIELDS = ["data", "opts"] as const;
/** Of a job, in BullMQ's spelling. */
const NUMBER_FIELDS = ["timestamp", "delay", "priority", "ats", "atm", "stc"] as const;

/** Returns the keys of removed values. `isDeep`: also checks the jobs that run. */
export async function removeOddValues(
  queue: Queue,
  client: RedisClient,
  isDeep: boolean,
): Promise<readonly string[]> {
  return [
    ...(await removeOddKeys(queue, client)),
    ...(await removeSettings(queue, client)),
    ...(await removeLateJobs(queue, client)),
    ...(isDeep ? await removeOddJobs(queue, client) : []),
  ];
}

async function removeOddKeys(queue: Queue, client: RedisClient): Promise<string[]> {
  const remove = async (name: string, type: string) => {
    const key = queue.toKey(name);
    if (!(await isOdd(client, key, type, EXPIRING.has(name)))) return [];
    await client.del(key);
    return [key];
  };
  const removals = Object.entries(KEYS).flatMap(([type, names]) => names.map((name) => remove(name, type)));
  return (await Promise.all(removals)).flat();
}

async function isOdd(client: RedisClient, key: string, type: string, expires: boolean): Promise<boolean> {
  const found = await client.type(key);
  if (found === "none" || found !== type) return found !== "none";
  if (type !== "string") return false;
  const [value, ttlMs] = await Promise.all([client.get(key), client.pttl(key)]);
  if (value === null) return false;
  return !COUNT.test(value) || (expires && (ttlMs === -1 || ttlMs > LONGEST_LIMIT_MS));
}

async function removeSettings(queue: Queue, client: RedisClient): Promise<string[]> {
  const key = queue.toKey("meta");
  const [events, ...foreign] = await client.hmget(key, MAX_EVENTS, ...FOREIGN_SETTINGS);
  const names = FOREIGN_SETTINGS.filter((_, at) => foreign[at] != null) as string[];
  if (events != null && !COUNT.test(events)) names.push(MAX_EVENTS);
  if (names.length === 0) return [];
  await client.hdel(key, ...names);
  // Wakes the workers.
  await queue.resume();
  return names.map((name) => `${key} ${name}`);
}

async function removeLateJobs(queue: Queue, client: RedisClient): Promise<string[]> {
  const delayed = queue.toKey("delayed");
  const leastScore = (Date.now() + LONGEST_DELAY_MS) * SCORE_PER_MS;
  const ids = await client.zrangebyscore(delayed, leastScore, "+inf", "LIMIT", 0, JOBS_AT_ONCE);
  if (ids.length === 0) return [];
  await client.zrem(delayed, ...ids);
  const keys = ids.map((id) => queue.toKey(id));
  await client.del(...keys);
  return keys;
}

/** A job that cannot be read stays among the running ones, and fails again and again. */
async function removeOddJobs(queue: Queue, client: RedisClient): Promise<string[]> {
  const active = queue.toKey("active");
  const removed: string[] = [];
  for (const id of await client.lrange(active, 0, JOBS_AT_ONCE)) {
    const key = queue.toKey(id);
    const type = await client.type(key);
    if (type === "none" || (type === "hash" && isReadable(await client.hgetall(key)))) continue;
    await client.lrem(active, 1, id);
    await client.del(key);
    removed.push(key);
  }
  return removed;
}

function isReadable(job: Readonly<Record<string, string>>): boolean {
  try {
    for (const name of JSON_FIELDS) JSON.parse(job[name] ?? "{}");
  } catch {
    return false;
  }
  return NUMBER_FIELDS.every((name) => COUNT.test(job[name] ?? "0"));
}
