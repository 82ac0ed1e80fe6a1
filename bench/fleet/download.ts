/** One case of many small transfers: the speed of the workers, and the CPU and memory of each process. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunningDaemon } from "../support/daemons.ts";
import { findDelivered, listFolder } from "../support/deliveries.ts";
import { countBetween, type RedisCounts } from "../support/redis.ts";
import type { RunningSimulator, SimulatedTransfers } from "../support/simulator.ts";
import type { Part, Usage, Window } from "./meter.ts";
import { type Bench, openWorld, PASSWORD, type World } from "./world.ts";

export interface DownloadCase {
  readonly title: string;
  /** 0: the embedded engine, in one process. */
  readonly workers: number;
  /** The number of transfers of each mailbox. */
  readonly mailboxes: readonly number[];
  /** Delay of the service's answer to each request for a file. */
  readonly delaySeconds?: number;
  /** `limits.transfers`. */
  readonly slots?: number;
}

export interface Downloads {
  readonly title: string;
  readonly transfers: number;
  readonly perSecond: number;
  /** From the first discovery to the last. */
  readonly discoverSeconds: number;
  /** From the first start of a download to the last delivery; the following figures are for this time. */
  readonly downloadSeconds: number;
  readonly cpuSeconds: Readonly<Record<Part | "others", number>>;
  /** The busiest thread, and its share of a core. */
  readonly busiest: { readonly part: Part; readonly share: number };
  /** Of the largest process of each part. */
  readonly peakMib: Readonly<Record<Part, number>>;
  /** To the service per transfer, without polls. */
  readonly requests: number;
  /** Per transfer, from its discovery to its delivery. */
  readonly redis: Omit<RedisCounts, "usedBytes"> | undefined;
  readonly problems: readonly string[];
}

/** Log messages at the end of a transfer. */
const ENDS = ["delivered", "quarantined", "gone"];
const CONTENT = { files: 3, bytes: 10 * 1024 };

/** A scenario's transfer to one mailbox. */
export function transferTo(address: string) {
  const files = Array.from({ length: CONTENT.files }, (_, at) => ({
    name: `file-${at + 1}.bin`,
    generate: { bytes: CONTENT.bytes },
  }));
  return { from: "anna@supplier.example", to: [address], password: PASSWORD, files };
}

/** `on`: the operation whose answers are delayed. */
export function describeScenario(
  transfers: SimulatedTransfers["transfers"],
  on: string,
  delaySeconds: number | undefined,
): SimulatedTransfers {
  if (delaySeconds === undefined) return { transfers };
  return { transfers, faults: [{ on, times: "always", does: { kind: "stall", seconds: delaySeconds } }] };
}

export async function measureDownloads(bench: Bench, it: DownloadCase): Promise<Downloads> {
  const transfers = it.mailboxes.reduce((sum, count) => sum + count, 0);
  await using world = await openWorld(bench, {
    isShared: it.workers > 0,
    scenario: describeScenario(transfersOf(it.mailboxes), "file", it.delaySeconds),
    mailboxes: it.mailboxes.map((_, at) => ({ email: addressOf(at) })),
    ...(it.slots === undefined ? {} : { slots: it.slots }),
  });
  const workers = await Promise.all(Array.from({ length: it.workers }, () => world.startReady("worker")));
  const before = await world.redis?.count();
  const last = await world.startReady(it.workers > 0 ? "scheduler" : "all");
  const daemons = [...workers, last];
  await untilSettled(world, daemons, transfers);
  const after = await world.redis?.count();
  const journal = readJournal(world.work);
  const window = { fromMs: journal.firstMs("downloading"), toMs: journal.lastMs("delivered") };
  const downloadSeconds = (window.toMs - window.fromMs) / 1000;
  const usage = world.meter.usage(window);
  const requests = await countRequests(world.simulator);
  return {
    title: it.title,
    transfers,
    perSecond: transfers / downloadSeconds,
    discoverSeconds: (journal.lastMs("discovered") - journal.firstMs("discovered")) / 1000,
    downloadSeconds,
    cpuSeconds: { ...sumByPart(usage), others: world.meter.others(window) },
    busiest: findBusiest(usage, window),
    peakMib: peakByPart(usage),
    requests: requests / transfers,
    redis: before && after && countBetween(before, after, transfers),
    problems: await closeAndCheck(world, daemons),
  };
}

/** The speed of discovery, and the memory in Redis of each waiting transfer. */
export interface Waiting {
  readonly transfers: number;
  readonly discoverSeconds: number;
  readonly schedulerSeconds: number;
  readonly bytes: number;
  readonly problems: readonly string[];
}

/** The difference of two measurements, without Redis's own memory. */
export async function measureWaiting(bench: Bench, transfers: number): Promise<Waiting> {
  const few = Math.ceil(transfers / 10);
  const { usedBytes: usedByFew } = await fillQueue(bench, few);
  const { usedBytes, ...facts } = await fillQueue(bench, transfers);
  return { transfers, bytes: (usedBytes - usedByFew) / (transfers - few), ...facts };
}

/** A scheduler without workers: nothing is downloaded. */
async function fillQueue(bench: Bench, transfers: number) {
  await using world = await openWorld(bench, {
    isShared: true,
    scenario: { transfers: transfersOf([transfers]) },
    mailboxes: [{ email: addressOf(0) }],
  });
  const { redis, meter } = world;
  if (redis === undefined) throw new Error("there is a Redis");
  const scheduler = await world.startReady("scheduler");
  await world.until("all to wait", async () => (await redis.waitingTransfers()) === transfers);
  const { usedBytes } = await redis.count();
  const journal = readJournal(world.work);
  const window = { fromMs: journal.firstMs("discovered"), toMs: journal.lastMs("discovered") };
  return {
    usedBytes,
    discoverSeconds: (window.toMs - window.fromMs) / 1000,
    schedulerSeconds: sumByPart(meter.usage(window)).scheduler,
    problems: await closeDaemons([scheduler]),
  };
}

/** Waits until all transfers have ended, delivered or not. `closeAndCheck` checks them. */
export async function untilSettled(
  { until }: World,
  daemons: readonly RunningDaemon[],
  transfers: number,
): Promise<void> {
  const settled = () => ENDS.reduce((sum, end) => sum + countLogged(daemons, end), 0);
  await until("all to be settled", () => settled() >= transfers);
}

/** Stops the daemons, and returns the problems found in the inbox and the logs. */
export async function closeAndCheck(
  { simulator, inbox }: World,
  daemons: readonly RunningDaemon[],
): Promise<string[]> {
  const problems = await closeDaemons(daemons);
  const wanted = new Set(simulator.transfers.map(({ trackingId }) => trackingId));
  const complete = new Set(findDelivered(CONTENT, inbox));
  const missing = [...wanted].filter((id) => !complete.has(id));
  const others = listFolder(inbox).filter((name) => !wanted.has(name));
  if (missing.length > 0) problems.push(`${missing.length} were not delivered`);
  // A second delivery of a transfer would have another name.
  if (others.length > 0) problems.push(`${others.length} unexpected deliveries`);
  const logged = countLogged(daemons, "delivered");
  if (logged !== wanted.size) problems.push(`${logged} deliveries were logged of ${wanted.size}`);
  return problems;
}

export function sumByPart(usage: readonly Usage[]): Record<Part, number> {
  const sums = { worker: 0, scheduler: 0, Redis: 0, service: 0 };
  for (const { part, cpuSeconds } of usage) sums[part] += cpuSeconds;
  return sums;
}

export function peakByPart(usage: readonly Usage[]): Record<Part, number> {
  const peaks = { worker: 0, scheduler: 0, Redis: 0, service: 0 };
  for (const { part, peakMib } of usage) peaks[part] = Math.max(peaks[part], peakMib);
  return peaks;
}

function findBusiest(usage: readonly Usage[], { fromMs, toMs }: Window): Downloads["busiest"] {
  const [most] = usage.toSorted((a, b) => b.threadSeconds - a.threadSeconds);
  if (most === undefined) throw new Error("nothing was measured");
  return { part: most.part, share: most.threadSeconds / ((toMs - fromMs) / 1000) };
}

async function closeDaemons(daemons: readonly RunningDaemon[]): Promise<string[]> {
  const codes = await Promise.all(daemons.map((daemon) => daemon.stop()));
  const failed = codes.filter((code) => code !== 0).map((code) => `a daemon ended with ${code}`);
  return [...daemons.flatMap(({ warnings }) => warnings), ...failed];
}

function countLogged(daemons: readonly RunningDaemon[], msg: string): number {
  return daemons.reduce((sum, daemon) => sum + daemon.count(msg), 0);
}

function addressOf(mailbox: number): string {
  return `mailbox-${mailbox + 1}@example.com`;
}

function transfersOf(mailboxes: readonly number[]): SimulatedTransfers["transfers"] {
  return mailboxes.flatMap((count, at) => Array.from({ length: count }, () => transferTo(addressOf(at))));
}

/** First and last times of each state in the journals of all processes. */
function readJournal(work: string) {
  const folder = join(work, "journal");
  const times = new Map<string, number[]>();
  for (const name of listFolder(folder)) {
    for (const line of readFileSync(join(folder, name), "utf8").trim().split("\n")) {
      const { at, state } = JSON.parse(line) as { at: string; state: string };
      times.set(state, times.get(state) ?? []);
      times.get(state)?.push(Date.parse(at));
    }
  }
  const of = (state: string) => times.get(state) ?? [];
  return {
    firstMs: (state: string) => Math.min(...of(state)),
    lastMs: (state: string) => Math.max(...of(state)),
  };
}

/** Requests about transfers, without polls and verification. */
async function countRequests({ url }: RunningSimulator): Promise<number> {
  const { totals } = (await (await fetch(`${url}/control/requests`)).json()) as {
    totals: Record<string, number>;
  };
  const about = ["info", "files", "file", "zip", "eml", "checksums"];
  return about.reduce((sum, operation) => sum + (totals[operation] ?? 0), 0);
}
