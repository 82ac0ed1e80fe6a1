/** A Redis for one measurement, and its own counters. */
import { Redis } from "ioredis";
import { freePort, launchRedis, singleServer } from "../../test/support/redis-server.ts";

export interface RedisCounts {
  /** Including commands inside scripts. */
  readonly commands: number;
  /** BullMQ's steps are scripts, each with one round trip. */
  readonly scripts: number;
  /** In both directions. */
  readonly networkBytes: number;
  /** Allocated for data and for Redis itself. */
  readonly usedBytes: number;
}

export interface RunningRedis extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  readonly version: string;
  count(): Promise<RedisCounts>;
  /** Transfers that wait for a worker. */
  waitingTransfers(): Promise<number>;
  /** Polls that are due and not started. */
  waitingPolls(): Promise<number>;
  /** The median of many. */
  roundTripMs(): Promise<number>;
}

const ROUND_TRIPS = 500;

/** Without persistence. `folder`: for its files. */
export async function startRedis(folder: string): Promise<RunningRedis> {
  const port = await freePort();
  const server = await launchRedis(folder, singleServer(port));
  const client = new Redis({ port, maxRetriesPerRequest: null });
  client.on("error", () => {});
  const info = await client.info();
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: server.pid,
    version: readText(info, "valkey_version") || readText(info, "redis_version"),
    async count() {
      const now = `${await client.info("everything")}`;
      return {
        commands: readNumber(now, "total_commands_processed"),
        scripts: Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(now)?.[1] ?? 0),
        networkBytes: readNumber(now, "total_net_input_bytes") + readNumber(now, "total_net_output_bytes"),
        usedBytes: readNumber(now, "used_memory"),
      };
    },
    async waitingTransfers() {
      const keys = await client.keys("inlet:download-*:prioritized");
      const counts = await Promise.all(keys.map((key) => client.zcard(key)));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    waitingPolls: () => client.llen("inlet:poll:wait"),
    async roundTripMs() {
      const took: number[] = [];
      for (let round = 0; round < ROUND_TRIPS; round++) {
        const startedMs = performance.now();
        await client.ping();
        took.push(performance.now() - startedMs);
      }
      return took.toSorted((a, b) => a - b)[ROUND_TRIPS >> 1] ?? 0;
    },
    async [Symbol.asyncDispose]() {
      client.disconnect();
      await server.kill();
    },
  };
}

/** The difference of two counts, divided by `parts`. */
export function countBetween(
  before: RedisCounts,
  after: RedisCounts,
  parts: number = 1,
): Omit<RedisCounts, "usedBytes"> {
  return {
    commands: (after.commands - before.commands) / parts,
    scripts: (after.scripts - before.scripts) / parts,
    networkBytes: (after.networkBytes - before.networkBytes) / parts,
  };
}

function readText(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? "";
}

function readNumber(info: string, name: string): number {
  return Number(readText(info, name));
}
