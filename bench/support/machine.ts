/** Describes the machine of the measurements. */
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { median } from "./timing.ts";

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly node: string;
  /** To create and sync a small file; the median of many. */
  readonly fsyncMs: number;
  /** To remove a small file. */
  readonly removeMs: number;
}

const FILES = 200;

/** `folder`: on the disk of the measurements. */
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
