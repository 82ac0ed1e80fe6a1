/** What the machine is on which figures were taken: they mean nothing without it. */
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { median } from "./timing.ts";

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly node: string;
  /** To make a small file and have it on the disk, the median of many. */
  readonly fsyncMs: number;
  /** To take one away. */
  readonly removeMs: number;
}

const FILES = 200;

/** `folder`: where the measurements will write. */
export function describeMachine(folder: string): Machine {
  const cores = cpus();
  return {
    processor: cores[0]?.model ?? "unknown",
    cores: cores.length,
    memoryGib: totalmem() / 1024 ** 3,
    node: process.versions.node,
    ...measureSmallFiles(join(folder, "small")),
  };
}

function measureSmallFiles(path: string): Pick<Machine, "fsyncMs" | "removeMs"> {
  const made: number[] = [];
  const removed: number[] = [];
  for (let file = 0; file < FILES; file++) {
    const startedMs = performance.now();
    const opened = openSync(path, "w");
    writeSync(opened, "x".repeat(1024));
    fsyncSync(opened);
    closeSync(opened);
    const madeMs = performance.now();
    rmSync(path);
    made.push(madeMs - startedMs);
    removed.push(performance.now() - madeMs);
  }
  return { fsyncMs: median(made), removeMs: median(removed) };
}
