/**
 * How far Inlet goes beyond one process, and what limits it: many small transfers with one, two and four workers, from
 * a quick service and from a slow one; and thousands of mailboxes with one scheduler. Prints tables, and fails where
 * something is not delivered, or twice. `--case NAME` runs some of it, `--scale 0.05` makes it smaller, `--output FILE`
 * keeps the figures as JSON, `--write` puts the tables into docs/scaling.md.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { installProgram } from "../support/processes.ts";
import { type DownloadCase, measureDownloads, measureWaiting } from "./download.ts";
import { describeFleetMachine } from "./machine.ts";
import { writePage } from "./page.ts";
import { measurePolls, type PollCase } from "./polls.ts";
import { type Figures, formatTables } from "./tables.ts";
import type { Bench } from "./world.ts";

/** So slow is the service where the wire or the service is what limits. */
const FILE_DELAY_SECONDS = 1;
const LIST_DELAY_SECONDS = 0.3;

type Group = "download" | "slow" | "mailboxes" | "polls";

const GROUPS: Readonly<Record<Group, (bench: Bench) => Promise<Partial<Figures>>>> = {
  async download(bench) {
    const transfers = scaled(1_000, bench, 50);
    tell("transfers that wait");
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
  if (groups.length < names.length) return complain(`--case is one of ${Object.keys(GROUPS).join(", ")}`);
  if (!(scale > 0 && scale <= 1)) return complain("--scale must be a number above 0, and at most 1");
  if (values.write && scale !== 1)
    return complain("--write takes figures of the whole size: leave out --scale");
  if (process.platform !== "linux")
    return complain("what processes take is read from /proc: this needs Linux");
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => stop.abort());
  const folder = mkdtempSync(join(tmpdir(), "inlet-bench-"));
  try {
    const launcher = installProgram(join(folder, "program"));
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
  const complaints = [
    ...(waiting?.complaints ?? []),
    ...results.flatMap(({ title, complaints: found }) => found.map((text) => `${title}: ${text}`)),
  ];
  for (const text of complaints) process.stderr.write(`bench:fleet: ${text}\n`);
  if (values.output !== undefined) writeFileSync(values.output, `${JSON.stringify(figures, null, 2)}\n`);
  if (values.write && complaints.length === 0) writePage(tables);
  return complaints.length === 0 ? 0 : 1;
}

function planFleets(common: Pick<DownloadCase, "mailboxes" | "delaySeconds">): DownloadCase[] {
  const fleets = [0, 1, 2, 4].map((workers) => ({ title: titleOf(workers), workers, ...common }));
  return [...fleets, { title: "1 worker, `limits.transfers: 16`", workers: 1, places: 16, ...common }];
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
    tell(it.title);
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

function tell(what: string): void {
  process.stderr.write(`… ${what}\n`);
}

function complain(message: string): number {
  process.stderr.write(`bench:fleet: ${message}.\n`);
  return 2;
}
