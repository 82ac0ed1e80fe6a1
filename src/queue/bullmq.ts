/**
 * The engine for many machines: BullMQ on Redis. Retries, delays, priorities, schedules and the recovery of jobs whose
 * worker died are BullMQ's; jobs carry ids only and are removed when they are done.
 *
 * BullMQ runs a job at least once: when a worker was stopped for longer than its lock, another worker takes the job. The
 * signal of the first run aborts then, and the ledger prevents a second delivery.
 */
import { unlessStopped } from "../base/deadline.ts";
import { connect, inspectRedis, type RedisSettings, reportOutages, untilReady } from "./bullmq-connection.ts";
import { BullEngine, type BullOptions, type BullQueue } from "./bullmq-engine.ts";

/** Throws `QUEUE_UNREACHABLE` where it is not patient, and `QUEUE_UNSUITABLE`. */
export async function openBullQueue(options: BullOptions): Promise<BullQueue> {
  const place = describePlace(options.redis);
  const client = connect(options.redis);
  reportOutages(client, place, options.outage);
  try {
    await untilReady(client, place, options.patient, options.signal);
    return new BullEngine(options, client, await unlessStopped(inspectRedis(client), 0, options.signal));
  } catch (error) {
    client.disconnect();
    throw error;
  }
}

/** Never with its credentials. */
export function describePlace({ url, sentinels, cluster }: RedisSettings): string {
  const nodes = [...cluster, ...sentinels];
  return nodes.length > 0 ? nodes.join(", ") : (url?.host ?? "");
}
