/** One case of many mailboxes: whether all are polled on time, how evenly, and with how much CPU and memory. */
import { setTimeout as pause } from "node:timers/promises";
import type { RunningDaemon } from "../support/daemons.ts";
import { countBetween, type RedisCounts } from "../support/redis.ts";
import {
  closeAndCheck,
  describeScenario,
  peakByPart,
  sumByPart,
  transferTo,
  untilSettled,
} from "./download.ts";
import type { Part } from "./meter.ts";
import { RequestLog } from "./requests.ts";
import { type Bench, openWorld, type World } from "./world.ts";

export interface PollCase {
  readonly title: string;
  /** 0: the embedded engine, in one process. */
  readonly schedulers: number;
  readonly mailboxes: number;
  readonly everySeconds: number;
  /** Measured intervals after the first poll of every mailbox. */
  readonly intervals: number;
  /** Delay of the service's answer to each poll. */
  readonly delaySeconds?: number;
}

export interface Polled {
  readonly title: string;
  readonly mailboxes: number;
  readonly everySeconds: number;
  readonly start: Start;
  readonly wantedPerMinute: number;
  readonly polledPerMinute: number;
  /** The longest time from one poll of a mailbox to the next. */
  readonly longestGapSeconds: number;
  /** Most requests in one second. */
  readonly busiestSecond: number;
  readonly averageSecond: number;
  /** Cores used. */
  readonly cores: Readonly<Record<Part | "others", number>>;
  readonly peakMib: Readonly<Record<Part, number>>;
  readonly polls: number;
  /** Memory of Redis, including its own. */
  readonly bytesPerMailbox: number | undefined;
  /** During the measured intervals. */
  readonly redis: Omit<RedisCounts, "usedBytes"> | undefined;
  readonly problems: readonly string[];
}

/** A first start: no tokens, nothing in Redis. */
interface Start {
  /** Until its configuration was read. */
  readonly readSeconds: number;
  /** Until it was ready: every poll is scheduled. */
  readonly readySeconds: number;
  /** Until every mailbox was polled once. */
  readonly polledSeconds: number;
  readonly requests: number;
  readonly busiestSecond: number;
}

/** One mailbox in ten has a transfer, which is delivered at once and stays listed. */
const ONE_IN = 10;
const SETTLE_MS = 3_000;
const MAX_INTERVALS_LATE = 2;
const MAX_LATE_MS = 60_000;

export async function measurePolls(bench: Bench, it: PollCase): Promise<Polled> {
  const requests = new RequestLog();
  const emails = Array.from({ length: it.mailboxes }, (_, at) => addressOf(at));
  const known = emails.filter(hasTransfer);
  const isShared = it.schedulers > 0;
  await using world = await openWorld(bench, {
    isShared,
    scenario: describeScenario(known.map(transferTo), "received", it.delaySeconds),
    mailboxes: emails.map((email) => ({ email, poll: `${it.everySeconds}s` })),
    onRequest: (line) => requests.add(line, Date.now()),
  });
  const workers = isShared ? [await world.startReady("worker")] : [];
  const empty = await world.redis?.count();
  const { start, pollers } = await measureStart(world, it, requests);
  const daemons = [...workers, ...pollers];
  await untilSettled(world, daemons, known.length);
  await untilOnTime(world, it.everySeconds * 1000);
  await pause(SETTLE_MS, undefined, { signal: bench.stop });

  const before = await world.redis?.count();
  const fromMs = Date.now();
  await pause(it.everySeconds * it.intervals * 1000, undefined, { signal: bench.stop });
  const window = { fromMs, toMs: Date.now() };
  const after = await world.redis?.count();
  const seconds = (window.toMs - window.fromMs) / 1000;
  const usage = world.meter.usage(window);
  const polls = requests.polls(window, hasTransfer);
  return {
    title: it.title,
    mailboxes: it.mailboxes,
    everySeconds: it.everySeconds,
    start,
    wantedPerMinute: (it.mailboxes * 60) / it.everySeconds,
    polledPerMinute: (polls * 60) / seconds,
    longestGapSeconds: requests.longestGapMs(window) / 1000,
    busiestSecond: requests.busiestSecond(window),
    averageSecond: requests.count(window) / seconds,
    cores: mapValues(
      { ...sumByPart(usage), others: world.meter.others(window) },
      (cpuSeconds) => cpuSeconds / seconds,
    ),
    peakMib: peakByPart(usage),
    polls,
    bytesPerMailbox: empty && before && (before.usedBytes - empty.usedBytes) / it.mailboxes,
    redis: before && after && countBetween(before, after),
    problems: await closeAndCheck(world, daemons),
  };
}

/** Starts the schedulers, and waits until every mailbox was polled. */
async function measureStart(
  world: World,
  { schedulers, mailboxes }: PollCase,
  requests: RequestLog,
): Promise<{ start: Start; pollers: readonly RunningDaemon[] }> {
  const role = schedulers > 0 ? "scheduler" : "all";
  const first = world.start(role);
  const others = Array.from({ length: Math.max(schedulers - 1, 0) }, () => world.start(role));
  await world.until("it to be ready", () => first.loggedMs("ready") !== undefined);
  await world.until("every mailbox to be polled", () => requests.mailboxes() === mailboxes);
  const window = { fromMs: first.startedMs, toMs: Date.now() };
  const secondsUntil = (ms: number | undefined) => ((ms ?? Number.NaN) - first.startedMs) / 1000;
  const start = {
    readSeconds: secondsUntil(first.loggedMs("starting")),
    readySeconds: secondsUntil(first.loggedMs("ready")),
    polledSeconds: secondsUntil(window.toMs),
    requests: requests.count(window),
    busiestSecond: requests.busiestSecond(window),
  };
  return { start, pollers: [first, ...others] };
}

/** Waits for the polls that became due during the start, but not for ever: an overloaded scheduler never catches up. */
async function untilOnTime({ redis, until }: World, everyMs: number): Promise<void> {
  if (redis === undefined) return;
  const latestMs = Date.now() + Math.min(everyMs * MAX_INTERVALS_LATE, MAX_LATE_MS);
  await until("no poll to be late", async () => Date.now() > latestMs || (await redis.waitingPolls()) === 0);
}

function addressOf(mailbox: number): string {
  return `mailbox-${mailbox}@example.com`;
}

function hasTransfer(email: string): boolean {
  return Number(/^mailbox-(\d+)@/.exec(email)?.[1]) % ONE_IN === 0;
}

function mapValues<Key extends string>(
  values: Readonly<Record<Key, number>>,
  change: (value: number) => number,
): Record<Key, number> {
  return Object.fromEntries(
    Object.entries<number>(values).map(([key, value]) => [key, change(value)]),
  ) as Record<Key, number>;
}
