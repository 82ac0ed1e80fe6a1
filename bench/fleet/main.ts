/**
 * Measures how Inlet scales beyond one process, and its limits: many small transfers with one, two and four workers, from a
 * fast and from a slow service; and thousands of mailboxes with one scheduler. Prints tables, and fails if a transfer is
 * not delivered, or twice. `--case NAME` runs single cases, `--scale 0.05` makes them smaller, `--output FILE` saves the
 * figures as JSON, `--write` writes the tables into docs/scaling.md.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildPackage } from "../../build.ts";
import { describeMachine } from "../support/machine.ts";
import { fillPlaces } from "../support/places.ts";
import { startRedis } from "../support/redis.ts";
import { type DownloadCase, measureDownloads, measureWaiting } from "./download.ts";
import { measurePolls, type PollCase } from "./polls.ts";
import { type Figures, type FleetMachine, formatTables } from "./tables.ts";
import type { Bench } from "./world.ts";

/** Delays of the slow service, which then is the limit. */
const FILE_DELAY_SECONDS = 1;
const LIST_DELAY_SECONDS = 0.3;

const PAGE = "docs/scaling.md";

type Group = "download" | "slow" | "mailboxes" | "polls";

const GROUPS: Readonly<Record<Group, (bench: Bench) => Promise<Partial<Figures>>>> = {
  async download(bench) {
    const transfers = scaled(1_000, bench, 50);
    log("waiting transfers");
    const waiting = await measureWaiting(bench, transfers);
    return { waiting, download: await measureAll(bench, planFleets({ mailboxes: [transfers] })) };
  },
  async slow(bench) {
    const common = { mailboxes: [scaled(160, bench, 16)], delaySeconds: FILE_DELAY_SECONDS };
    return { slow: await measureAll(bench, planFleets(common)) };
  },
  async mailboxes(bench) {
    const transfers = scaled(160, bench, 20);
    const common = { workers: 4, delaySeconds: FILE_DELAY_SECONDS };
    const tenth = Math.round(transfers / 10);
    return {
      mailboxes: await measureAll(bench, [
        { title: "all in one mailbox, no other", mailboxes: [transfers], ...common },
        { title: "spread over 10 mailboxes", mailboxes: Array.from({ length: 10 }, () => tenth), ...common },
        { title: "all in one mailbox of two", mailboxes: [transfers, 0], ...common },
      ]),
    };
  },
  async polls(bench) {
    const mailboxes = scaled(5_000, bench, 100);
    const everySeconds = scaled(60, bench, 5);
    const few = { mailboxes: scaled(600, bench, 100), everySeconds: 10, delaySeconds: LIST_DELAY_SECONDS };
    const many = { mailboxes, everySeconds, intervals: 2 };
    const polls: PollCase[] = [
      { title: titleOf(0), schedulers: 0, ...many },
      { title: "1 scheduler", schedulers: 1, ...many },
      { title: "1 scheduler", schedulers: 1, ...many, everySeconds: Math.max(everySeconds / 4, 2) },
      { title: "1 scheduler, slow lists", schedulers: 1, intervals: 2, ...few },
      { title: "2 schedulers, slow lists", schedulers: 2, intervals: 2, ...few },
    ];
    return { polls: await inTurn(polls, (it) => measurePolls(bench, it)) };
  },
};

const { values } = parseArgs({
  options: {
    scale: { type: "string", default: "1" },
    case: { type: "string", multiple: true, default: Object.keys(GROUPS) },
    output: { type: "string" },
    write: { type: "boolean", default: false },
  },
});
process.exitCode = await main(Number(values.scale), values.case);

async function main(scale: number, names: readonly string[]): Promise<number> {
  const groups = names.filter((name): name is Group => Object.hasOwn(GROUPS, name));
  if (groups.length < names.length) return fail(`--case is one of ${Object.keys(GROUPS).join(", ")}`);
  if (!(scale > 0 && scale <= 1)) return fail("--scale must be a number above 0, and at most 1");
  if (values.write && scale !== 1) return fail("--write needs figures of the full size: leave out --scale");
  if (process.platform !== "linux") return fail("the bench reads /proc: it needs Linux");
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => stop.abort());
  const folder = mkdtempSync(join(tmpdir(), "inlet-bench-"));
  try {
    const launcher = await buildPackage(join(folder, "program"));
    const bench = { launcher, folder: join(folder, "case"), scale, stop: stop.signal };
    let figures: Figures = { machine: await describeFleetMachine(folder) };
    for (const group of groups) figures = { ...figures, ...(await GROUPS[group](bench)) };
    return report(figures);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return 130;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function report(figures: Figures): number {
  const tables = formatTables(figures);
  for (const table of Object.values(tables)) process.stdout.write(`${table}\n\n`);
  const { waiting, download = [], slow = [], mailboxes = [], polls = [] } = figures;
  const results = [...download, ...slow, ...mailboxes, ...polls];
  const problems = [
    ...(waiting?.problems ?? []),
    ...results.flatMap(({ title, problems: found }) => found.map((text) => `${title}: ${text}`)),
  ];
  for (const text of problems) process.stderr.write(`bench:fleet: ${text}\n`);
  if (values.output !== undefined) writeFileSync(values.output, `${JSON.stringify(figures, null, 2)}\n`);
  if (values.write && problems.length === 0) writePage(tables);
  return problems.length === 0 ? 0 : 1;
}

/** Tables of cases that did not run stay as they are. Not every table has a place in the page. */
function writePage(tables: Readonly<Record<string, string>>): void {
  const path = resolve(import.meta.dirname, "../..", PAGE);
  const page = readFileSync(path, "utf8");
  const shown = Object.entries(tables).filter(([name]) => page.includes(`<!-- figures: ${name} -->`));
  writeFileSync(path, fillPlaces(page, Object.fromEntries(shown), PAGE));
}

/** `folder`: on the disk of the measurements. */
async function describeFleetMachine(folder: string): Promise<FleetMachine> {
  await using redis = await startRedis(folder);
  return { ...describeMachine(folder), redis: redis.version, roundTripMs: await redis.roundTripMs() };
}

function planFleets(common: Pick<DownloadCase, "mailboxes" | "delaySeconds">): DownloadCase[] {
  const fleets = [0, 1, 2, 4].map((workers) => ({ title: titleOf(workers), workers, ...common }));
  return [...fleets, { title: "1 worker, `limits.transfers: 16`", workers: 1, slots: 16, ...common }];
}

function measureAll(bench: Bench, cases: readonly DownloadCase[]) {
  return inTurn(cases, (it) => measureDownloads(bench, it));
}

async function inTurn<Case extends { readonly title: string }, Result>(
  cases: readonly Case[],
  measure: (it: Case) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const it of cases) {
    log(it.title);
    results.push(await measure(it));
  }
  return results;
}

function titleOf(workers: number): string {
  if (workers === 0) return "1 process, embedded";
  return workers === 1 ? "1 worker" : `${workers} workers`;
}

function scaled(number: number, { scale }: Bench, least: number): number {
  return Math.max(least, Math.round(number * scale));
}

function log(what: string): void {
  process.stderr.write(`… ${what}\n`);
}

function fail(message: string): number {
  process.stderr.write(`bench:fleet: ${message}.\n`);
  return 2;
}
