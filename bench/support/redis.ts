/** A Redis of a measurement's own, and what it counts by itself. */
import { Redis } from "ioredis";
import { freePort, launchRedis, singleServer } from "../../test/support/redis-server.ts";

export interface RedisCounts {
  /** Those inside scripts included. */
  readonly commands: number;
  /** BullMQ's steps are scripts: each is one round trip. */
  readonly scripts: number;
  /** In both directions. */
  readonly networkBytes: number;
  /** What it has allocated, for data and for itself. */
  readonly usedBytes: number;
}

export interface RunningRedis extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  readonly version: string;
  count(): Promise<RedisCounts>;
  /** How many transfers wait for a worker. */
  waitingTransfers(): Promise<number>;
  /** How many polls are due and not begun. */
  waitingPolls(): Promise<number>;
  /** The median of many, in milliseconds. */
  roundTripMs(): Promise<number>;
}

const ROUND_TRIPS = 500;

/** Without persistence, in the folder where it may write. */
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

/** What it has done in between, of which each of `parts` has its share. */
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
