/**
 * How much memory the real program takes: `inlet once` for one huge file, for many small transfers and for a ZIP of
 * many files, and `inlet run` for the same small transfers and a while after. Prints a row for each, and fails where
 * one takes more than it may or something is not delivered. `--scale 0.01` makes all of it smaller, for a quick look.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Content, findDelivered, listFolder } from "./deliveries.ts";
import { installProgram, type Measured, measureProcess, readCpuSeconds } from "./processes.ts";
import { type RunningSimulator, startSimulator } from "./simulator.ts";

const MOST_MIB = 200;
const GIB = 1024 ** 3;
const PASSWORD = "Sunny+Harbour%42";
const MAILBOX = "orders@example.com";
/** What the program leaves free by default, and some room for receipts and for other programs. */
const SPARE_BYTES = 1.5 * GIB;
/** `run` polls so often, and is watched for so long after all was delivered: what it never gives back shows then. */
const POLL = "5s";
const AFTERWARDS_MS = 15_000;
/** Whatever takes longer is stopped, and counts as not delivered. */
const LONGEST_MS = 30 * 60_000;

interface Case extends Content {
  readonly name: string;
  readonly command: "once" | "run";
  readonly fetch: "files" | "zip";
  readonly transfers: number;
}

const { values } = parseArgs({ options: { scale: { type: "string", default: "1" } } });
process.exitCode = await main(Number(values.scale));

async function main(scale: number): Promise<number> {
  if (!(scale > 0 && scale <= 1)) return complain("--scale must be a number above 0, and at most 1");
  if (process.platform !== "linux") return complain("memory is read from /proc, so this needs Linux");
  const cases = planCases(scale);
  const lack = findLackOfSpace(cases);
  if (lack !== undefined) return complain(lack);
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => stop.abort());
  const folder = mkdtempSync(join(tmpdir(), "inlet-bench-"));
  try {
    const launcher = installProgram(join(folder, "program"));
    let isGood = true;
    print("peak MiB  median MiB  CPU s  simulator's  wall s  delivered  verdict  case");
    for (const it of cases)
      isGood = (await runCase(it, launcher, join(folder, "case"), stop.signal)) && isGood;
    return isGood ? 0 : 1;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return 130;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function planCases(scale: number): readonly Case[] {
  const scaled = (number: number) => Math.max(1, Math.round(number * scale));
  const huge = { transfers: 1, files: 1, bytes: scaled(4 * GIB) };
  const many = { transfers: scaled(3000), files: 3, bytes: 10 * 1024 };
  const zipped = { transfers: 1, files: scaled(2000), bytes: 16 * 1024 };
  return [
    { name: "once: nothing to do", command: "once", fetch: "files", transfers: 0, files: 0, bytes: 0 },
    {
      name: `once: a file of ${(huge.bytes / GIB).toFixed(2)} GiB`,
      command: "once",
      fetch: "files",
      ...huge,
    },
    { name: `once: ${many.transfers} transfers of 3 × 10 KiB`, command: "once", fetch: "files", ...many },
    { name: `once: a ZIP of ${zipped.files} × 16 KiB`, command: "once", fetch: "zip", ...zipped },
    { name: `run: ${many.transfers} transfers of 3 × 10 KiB`, command: "run", fetch: "files", ...many },
  ];
}

/** A ZIP stands beside what comes out of it. */
function findLackOfSpace(cases: readonly Case[]): string | undefined {
  const needs = cases.map((it) => it.transfers * it.files * it.bytes * (it.fetch === "zip" ? 2 : 1));
  const needed = Math.max(...needs) + SPARE_BYTES;
  const { bavail, bsize } = statfsSync(tmpdir());
  if (bavail * bsize >= needed) return undefined;
  const [has, wants] = [bavail * bsize, needed].map((bytes) => `${(bytes / GIB).toFixed(1)} GiB`);
  return `${tmpdir()} has ${has} free, and ${wants} are needed: say TMPDIR=… for another place, or --scale for less`;
}

/** Measures one case in a folder of its own, prints its row, and says whether it is as it should be. */
async function runCase(it: Case, launcher: string, folder: string, stop: AbortSignal): Promise<boolean> {
  mkdirSync(folder);
  const log = join(folder, "log");
  try {
    await using simulator = await startSimulator(launcher, folder, describeScenario(it));
    const config = join(folder, "inlet.yaml");
    writeFileSync(config, JSON.stringify(describeConfig(it, simulator)), { mode: 0o600 });
    const isDone = watchForEnd(it, join(folder, "inbox"));
    const measured = await measureProcess([launcher, it.command, "--config", config], { log, isDone }, stop);
    const delivered = findDelivered(it, join(folder, "inbox")).length;
    const isGood = measured.exitCode === 0 && delivered === it.transfers && measured.peakMib < MOST_MIB;
    print(formatRow(it, measured, readCpuSeconds(simulator.pid) ?? 0, delivered));
    if (measured.exitCode !== 0)
      print(`  exit code ${measured.exitCode}: ${readFileSync(log, "utf8").slice(-2000)}`);
    return isGood;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function describeScenario(it: Case) {
  const files = Array.from({ length: it.files }, (_, index) => ({
    name: `file-${index + 1}.bin`,
    generate: { bytes: it.bytes },
  }));
  const transfer = { from: "anna@supplier.example", to: [MAILBOX], password: PASSWORD, files };
  return { transfers: Array.from({ length: it.transfers }, () => transfer) };
}

/** JSON is YAML too. */
function describeConfig(it: Case, { url, clientId }: RunningSimulator) {
  const poll = it.command === "run" ? POLL : "1h";
  const passwords = [{ sender: "*", password: PASSWORD }];
  return {
    service: { baseUrl: url, clientId },
    inbox: "inbox",
    work: "work",
    state: "state",
    mailboxes: [{ email: MAILBOX, poll, fetch: it.fetch, layout: "{trackingId}", passwords }],
  };
}

/** `once` ends by itself; `run` is asked to, a while after the last transfer came. */
function watchForEnd(it: Case, inbox: string): () => boolean {
  const latestMs = performance.now() + LONGEST_MS;
  let completeMs: number | undefined;
  return () => {
    const nowMs = performance.now();
    if (nowMs > latestMs) return true;
    if (it.command === "once") return false;
    if (completeMs === undefined && listFolder(inbox).length >= it.transfers) completeMs = nowMs;
    return completeMs !== undefined && nowMs - completeMs > AFTERWARDS_MS;
  };
}

function formatRow(it: Case, measured: Measured, simulatorSeconds: number, delivered: number): string {
  const isUnder = measured.peakMib < MOST_MIB;
  return [
    measured.peakMib.toFixed(1).padStart(8),
    measured.medianMib.toFixed(1).padStart(10),
    measured.cpuSeconds.toFixed(1).padStart(5),
    simulatorSeconds.toFixed(1).padStart(11),
    measured.wallSeconds.toFixed(1).padStart(6),
    `${delivered}/${it.transfers}`.padStart(9),
    `${isUnder ? "under" : "OVER"} ${MOST_MIB}`,
    it.name,
  ].join("  ");
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function complain(message: string): number {
  process.stderr.write(`bench:memory: ${message}.\n`);
  return 2;
}
