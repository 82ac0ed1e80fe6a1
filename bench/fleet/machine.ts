/** What the machine is on which figures were taken: they mean nothing without it. */
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { startRedis } from "../support/redis.ts";

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly node: string;
  readonly redis: string;
  /** To make a small file and have it on the disk, the median of many. */
  readonly fsyncMs: number;
  /** To ask Redis and have its answer, the median of many. */
  readonly roundTripMs: number;
}

const FILES = 200;

/** `folder`: where the measurements will write. */
export async function describeMachine(folder: string): Promise<Machine> {
  await using redis = await startRedis(folder);
  const cores = cpus();
  return {
    processor: cores[0]?.model ?? "unknown",
    cores: cores.length,
    memoryGib: totalmem() / 1024 ** 3,
    node: process.versions.node,
    redis: redis.version,
    fsyncMs: measureFsync(join(folder, "fsync")),
    roundTripMs: await redis.roundTripMs(),
  };
}

function measureFsync(path: string): number {
  const took: number[] = [];
  for (let file = 0; file < FILES; file++) {
    const startedMs = performance.now();
    const opened = openSync(path, "w");
    writeSync(opened, "x".repeat(1024));
    fsyncSync(opened);
    closeSync(opened);
    took.push(performance.now() - startedMs);
    rmSync(path);
  }
  return took.toSorted((a, b) => a - b)[FILES >> 1] ?? 0;
}
