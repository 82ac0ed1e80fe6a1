/** Runs worlds for another process, which reads a line of JSON about each. */
import { createInterface } from "node:readline";
import { makePlan } from "./plan/plan.ts";
import { runPlan } from "./run.ts";

/** What a line says. `worlds` and `seconds`: until then, this world included. */
export interface SeedReport {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly worlds: number;
  readonly seconds: number;
}

/** A violation may quote a whole stack. */
const MAX_CHARACTERS = 300;

/** Runs one world after the other, whatever it shows, and prints the seeds that fail. */
export async function exploreAll(first: number, minutes: number, maxWorlds: number): Promise<void> {
  const report = startReports();
  const endMs = performance.now() + minutes * 60_000;
  for (let seed = first; performance.now() < endMs && seed < first + maxWorlds; seed++) {
    await report(seed, (violations) => violations.length > 0);
  }
}

/** Reads seeds from the standard input, one a line, and prints what the world of each shows. */
export async function checkSeeds(): Promise<void> {
  const report = startReports();
  for await (const line of createInterface({ input: process.stdin })) await report(Number(line), () => true);
}

function startReports() {
  // The process that asks has ended.
  process.on("disconnect", () => process.exit());
  const startedMs = performance.now();
  let worlds = 0;
  return async (seed: number, isWanted: (violations: readonly string[]) => boolean): Promise<void> => {
    // If this process crashes, or the world never ends, the other one knows the seed.
    process.send?.(seed);
    const { violations: all } = await runPlan(makePlan(seed));
    const violations = all.map((text) => text.slice(0, MAX_CHARACTERS));
    worlds++;
    if (!isWanted(violations)) return;
    const seconds = Math.round((performance.now() - startedMs) / 100) / 10;
    const line: SeedReport = { seed, violations, worlds, seconds };
    process.stdout.write(`${JSON.stringify(line)}\n`);
  };
}
