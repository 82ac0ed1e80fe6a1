/** Runs worlds for another process, which reads a line of JSON about each. */
import { createInterface } from "node:readline";
import { makePlan } from "./plan/plan.ts";
import { runPlan } from "./run.ts";

/** What a line says. */
export interface SeedReport {
  readonly seed: number;
  readonly violations: readonly string[];
}

/** What is sent before each world: its seed, and what the process has spent so far. */
export interface Begun {
  readonly seed: number;
  readonly seconds: number;
}

/** A violation may quote a whole stack. */
const MAX_CHARACTERS = 300;

/**
 * Runs one world after the other, whatever it shows, and prints the seeds that fail. `minutes`: of processor time, because
 * others may use the machine too.
 */
export async function exploreAll(first: number, minutes: number, maxWorlds: number): Promise<void> {
  const report = startReports();
  let seed = first;
  for (; spentSeconds() < minutes * 60 && seed < first + maxWorlds; seed++) {
    await report(seed, (violations) => violations.length > 0);
  }
  process.stderr.write(
    `Worlds: ${seed - first}, in ${Math.round(spentSeconds())} seconds of processor time.\n`,
  );
}

/** Reads seeds from the standard input, one a line, and prints what the world of each shows. */
export async function checkSeeds(): Promise<void> {
  const report = startReports();
  for await (const line of createInterface({ input: process.stdin })) await report(Number(line), () => true);
}

/** Processor time of this process. */
function spentSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000_000;
}

function startReports() {
  // The process that asks has ended.
  process.on("disconnect", () => process.exit());
  return async (seed: number, isWanted: (violations: readonly string[]) => boolean): Promise<void> => {
    // If this process crashes, or the world never ends, the other one knows the seed.
    process.send?.({ seed, seconds: spentSeconds() } satisfies Begun);
    const { violations: all } = await runPlan(makePlan(seed));
    const violations = all.map((text) => text.slice(0, MAX_CHARACTERS));
    if (!isWanted(violations)) return;
    const line: SeedReport = { seed, violations };
    process.stdout.write(`${JSON.stringify(line)}\n`);
  };
}
