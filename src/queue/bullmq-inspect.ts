/** A look at the Redis that holds the queue, for those who only want to know: nothing is opened or changed. */
import { Cluster, type Redis } from "ioredis";
import { unlessStopped } from "../base/deadline.ts";
import { Fault } from "../base/faults.ts";
import { describePlace } from "./bullmq.ts";
import {
  connect,
  inspectRedis,
  type RedisClient,
  type RedisFacts,
  type RedisSettings,
  untilReady,
} from "./bullmq-connection.ts";

export interface QueueReport extends RedisFacts {
  /** Where it is, without credentials. */
  readonly place: string;
  /** How it keeps what it holds over a restart, in words; the queue does not depend on it. */
  readonly persistence: string;
}

/** Throws `QUEUE_UNREACHABLE`, also where it does not answer in time, and `QUEUE_UNSUITABLE`. */
export async function inspectQueue(
  redis: RedisSettings,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<QueueReport> {
  const place = describePlace(redis);
  const client = connect(redis);
  // Told by whoever waits for it; without anybody listening it would be printed.
  client.on("error", () => {});
  const late = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([signal, late]);
  try {
    await untilReady(client, place, false, either);
    const asked = Promise.all([inspectRedis(client), findPersistence(client)]);
    const [facts, persistence] = await unlessStopped(asked, 0, either);
    return { ...facts, place, persistence };
  } catch (error) {
    if (!late.aborted || signal.aborted) throw error;
    throw new Fault("QUEUE_UNREACHABLE", { detail: `${place} (no answer in ${timeoutMs / 1000} s)` });
  } finally {
    client.disconnect();
  }
}

async function findPersistence(client: RedisClient): Promise<string> {
  const node: Redis | undefined = client instanceof Cluster ? client.nodes("master")[0] : client;
  const info = (await node?.info("persistence")) ?? "";
  if (/^aof_enabled:1/m.test(info)) return "it keeps jobs over a restart (append-only file)";
  // A hosted Redis may not tell.
  const save: unknown = await node?.config("GET", "save").catch(() => undefined);
  const points = Array.isArray(save) ? String(save[1] ?? "") : undefined;
  if (points === undefined) return "whether it keeps jobs over a restart, it does not tell";
  return points === ""
    ? "it forgets jobs at a restart, which costs nothing: the next poll finds what is left to do"
    : "it keeps jobs over a restart (snapshots)";
}
