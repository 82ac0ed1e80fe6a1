/**
 * Measures the speed and the memory of Inlet and of other programs that fetch the same bytes from the same nginx. Prints a
 * table for each case and saves the figures in figures.json, from which `npm run docs` writes them into the pages.
 * `--case NAME` runs single cases, `--rounds N` sets the number of rounds, `--soak SECONDS` shortens the longest case, and
 * `--scale 0.05` makes all cases smaller for a quick look, without saving figures.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildPackage } from "../build.ts";
import { measureCalls } from "./cases/calls.ts";
import { measureCommands } from "./cases/commands.ts";
import { measureCosts } from "./cases/costs.ts";
import { measureDaemon } from "./cases/daemon.ts";
import { measureFleet } from "./cases/fleet.ts";
import { measureHistory } from "./cases/history.ts";
import { measureLargeFile } from "./cases/large-file.ts";
import { measureManyFiles } from "./cases/many-files.ts";
import { measureManyTransfers } from "./cases/many-transfers.ts";
import { measurePolls } from "./cases/polls.ts";
import { measureProfiles } from "./cases/profiles.ts";
import { measureRealLink } from "./cases/real-link.ts";
import { measureSlowLink } from "./cases/slow-link.ts";
import { measureSoak } from "./cases/soak.ts";
import { measureStrangers } from "./cases/strangers.ts";
import { measureWarmDaemon } from "./cases/warm-daemon.ts";
import { type Figures, formatProfiles, formatRows, readFigures, writeFigures } from "./figures.ts";
import type { Bench } from "./support/bench.ts";
import { describeMachine } from "./support/machine.ts";
import { keepMemory } from "./support/memory.ts";
import type { Row } from "./support/rows.ts";
import { findTools, readVersions } from "./support/tools.ts";

/** The order matters: creating small files is slower within a minute after large ones were removed. */
const CASES: Readonly<Record<string, (bench: Bench) => Promise<Row[]>>> = {
  "many-files": measureManyFiles,
  "many-transfers": measureManyTransfers,
  calls: measureCalls,
  "warm-daemon": measureWarmDaemon,
  "large-file": measureLargeFile,
  polls: measurePolls,
  daemon: measureDaemon,
  commands: measureCommands,
  history: measureHistory,
  costs: measureCosts,
  strangers: measureStrangers,
  "slow-link": measureSlowLink,
  "real-link": measureRealLink,
  fleet: measureFleet,
  soak: measureSoak,
};
/** Explains the figures of the others. */
const PROFILES = "profiles";
const NAMES = [...Object.keys(CASES), PROFILES];
const SOAK_SECONDS = 30 * 60;

const { values } = parseArgs({
  options: {
    case: { type: "string", multiple: true, default: NAMES },
    rounds: { type: "string", default: "5" },
    scale: { type: "string", default: "1" },
    soak: { type: "string", default: String(SOAK_SECONDS) },
  },
});
process.exitCode = await main({
  names: values.case,
  rounds: Number(values.rounds),
  scale: Number(values.scale),
  soakSeconds: Number(values.soak),
});

async function main(wanted: {
  readonly names: readonly string[];
  readonly rounds: number;
  readonly scale: number;
  readonly soakSeconds: number;
}): Promise<number> {
  const { names, ...options } = wanted;
  const problem = findProblem(wanted);
  if (problem !== undefined) return fail(problem);
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => stop.abort());
  const folder = mkdtempSync(join(tmpdir(), "inlet-bench-"));
  using _memory = keepMemory(log);
  try {
    const tools = await findTools();
    const launcher = await buildPackage(join(folder, "program"));
    const machine = { ...describeMachine(folder), tools: readVersions(tools) };
    for (const name of names) {
      log(`… ${name}`);
      const own = join(folder, name);
      mkdirSync(own);
      const bench = { launcher, tools, folder: own, ...options, stop: stop.signal, log };
      const before = readFigures();
      const { table, figures } = await measure(name, bench, before);
      process.stdout.write(`${table}\n\n`);
      const isWhole = options.scale === 1 && (name !== "soak" || options.soakSeconds >= SOAK_SECONDS);
      if (isWhole) writeFigures({ ...before, ...figures, machine, rounds: options.rounds });
    }
    return 0;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return 130;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(
  name: string,
  bench: Bench,
  { cases, profiles }: Pick<Figures, "cases" | "profiles">,
): Promise<{ table: string; figures: Pick<Figures, "cases" | "profiles"> }> {
  if (name === PROFILES) {
    const measured = await measureProfiles(bench);
    return { table: formatProfiles(measured), figures: { cases, profiles: measured } };
  }
  const rows = (await CASES[name]?.(bench)) ?? [];
  return { table: formatRows(rows), figures: { cases: { ...cases, [name]: rows }, profiles } };
}

function findProblem({ names, rounds, scale, soakSeconds }: Parameters<typeof main>[0]): string | undefined {
  if (names.some((name) => !NAMES.includes(name))) return `--case is one of ${NAMES.join(", ")}`;
  if (!(Number.isInteger(rounds) && rounds > 0)) return "--rounds must be a number above 0";
  if (!(scale > 0 && scale <= 1)) return "--scale must be a number above 0, and at most 1";
  if (!(soakSeconds > 0)) return "--soak must be a number of seconds above 0";
  return process.platform === "linux" ? undefined : "the bench reads /proc: it needs Linux";
}

function log(text: string): void {
  process.stderr.write(`${text}\n`);
}

function fail(message: string): number {
  log(`bench: ${message}.`);
  return 2;
}
