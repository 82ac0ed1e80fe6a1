/** One case of many small transfers: how fast workers download them, and what that takes of whom. */
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
  /** None: the embedded engine, in one process. */
  readonly workers: number;
  /** How many transfers each mailbox has. */
  readonly mailboxes: readonly number[];
  /** How long the service takes to answer when a file is asked for. */
  readonly delaySeconds?: number;
  /** `limits.transfers`. */
  readonly places?: number;
}

export interface Downloads {
  readonly title: string;
  readonly transfers: number;
  readonly perSecond: number;
  /** From the first that was listed to the last. */
  readonly discoverSeconds: number;
  /** From the first that was begun to the last that was delivered; what follows is about this while. */
  readonly downloadSeconds: number;
  readonly cpuSeconds: Readonly<Record<Part | "others", number>>;
  /** The thread that computed most, and its share of a core. */
  readonly busiest: { readonly part: Part; readonly share: number };
  /** Of the largest one of each. */
  readonly peakMib: Readonly<Record<Part, number>>;
  /** Of the service, per transfer, beside polls. */
  readonly requests: number;
  /** Per transfer, from its discovery to its delivery. */
  readonly redis: Omit<RedisCounts, "usedBytes"> | undefined;
  /** What is wrong, for people. */
  readonly complaints: readonly string[];
}

/** What a daemon says at the end of a transfer. */
const ENDS = ["delivered", "quarantined", "gone"];
const CONTENT = { files: 3, bytes: 10 * 1024 };

/** A transfer to one mailbox, as a scenario has it. */
export function transferTo(address: string) {
  const files = Array.from({ length: CONTENT.files }, (_, at) => ({
    name: `file-${at + 1}.bin`,
    generate: { bytes: CONTENT.bytes },
  }));
  return { from: "anna@supplier.example", to: [address], password: PASSWORD, files };
}

/** `on`: the operation whose answers take so long, where they do. */
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
    ...(it.places === undefined ? {} : { places: it.places }),
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
  const asked = await countRequests(world.simulator);
  return {
    title: it.title,
    transfers,
    perSecond: transfers / downloadSeconds,
    discoverSeconds: (journal.lastMs("discovered") - journal.firstMs("discovered")) / 1000,
    downloadSeconds,
    cpuSeconds: { ...sumByPart(usage), others: world.meter.others(window) },
    busiest: findBusiest(usage, window),
    peakMib: peakByPart(usage),
    requests: asked / transfers,
    redis: before && after && countBetween(before, after, transfers),
    complaints: await closeAndCheck(world, daemons),
  };
}

/** How fast transfers are discovered, and how much of Redis each takes that waits. */
export interface Waiting {
  readonly transfers: number;
  readonly discoverSeconds: number;
  readonly schedulerSeconds: number;
  readonly bytes: number;
  readonly complaints: readonly string[];
}

/** What Redis needs for itself is in both of two measurements, so their difference is what transfers take. */
export async function measureWaiting(bench: Bench, transfers: number): Promise<Waiting> {
  const few = Math.ceil(transfers / 10);
  const { usedBytes: usedByFew } = await fillQueue(bench, few);
  const { usedBytes, ...facts } = await fillQueue(bench, transfers);
  return { transfers, bytes: (usedBytes - usedByFew) / (transfers - few), ...facts };
}

/** A scheduler alone: nobody downloads. */
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
    complaints: await closeDaemons([scheduler]),
  };
}

/** Delivered or not: what should have been is checked afterwards. */
export async function untilSettled(
  { until }: World,
  daemons: readonly RunningDaemon[],
  transfers: number,
): Promise<void> {
  const settled = () => ENDS.reduce((sum, end) => sum + countSaid(daemons, end), 0);
  await until("all to be settled", () => settled() >= transfers);
}

/** Ends the daemons, and says what is wrong with what they did. */
export async function closeAndCheck(
  { simulator, inbox }: World,
  daemons: readonly RunningDaemon[],
): Promise<string[]> {
  const complaints = await closeDaemons(daemons);
  const wanted = new Set(simulator.transfers.map(({ trackingId }) => trackingId));
  const complete = new Set(findDelivered(CONTENT, inbox));
  const missing = [...wanted].filter((id) => !complete.has(id));
  const others = listFolder(inbox).filter((name) => !wanted.has(name));
  if (missing.length > 0) complaints.push(`${missing.length} were not delivered`);
  // A second delivery of a transfer would have another name.
  if (others.length > 0) complaints.push(`${others.length} were delivered that should not have been`);
  const said = countSaid(daemons, "delivered");
  if (said !== wanted.size) complaints.push(`${said} deliveries were reported of ${wanted.size}`);
  return complaints;
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
  return [...daemons.flatMap(({ complaints }) => complaints), ...failed];
}

function countSaid(daemons: readonly RunningDaemon[], msg: string): number {
  return daemons.reduce((sum, daemon) => sum + daemon.count(msg), 0);
}

function addressOf(mailbox: number): string {
  return `mailbox-${mailbox + 1}@example.com`;
}

function transfersOf(mailboxes: readonly number[]): SimulatedTransfers["transfers"] {
  return mailboxes.flatMap((count, at) => Array.from({ length: count }, () => transferTo(addressOf(at))));
}

/** When transfers entered a state, by the journals of all hosts and processes. */
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

/** What was asked of the service about transfers: neither polls nor proofs of addresses. */
async function countRequests({ url }: RunningSimulator): Promise<number> {
  const { totals } = (await (await fetch(`${url}/control/requests`)).json()) as {
    totals: Record<string, number>;
  };
  const about = ["info", "files", "file", "zip", "eml", "checksums"];
  return about.reduce((sum, operation) => sum + (totals[operation] ?? 0), 0);
}
