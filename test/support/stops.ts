/** Runs one way to stop the work of a daemon: all is well, the cause begins, lasts and ends, and all is well again. */
import { writeFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { expect } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import { forEachLimit } from "../../src/base/concurrency.ts";
import type { ChildTask } from "./daemon-task.ts";
import { type Disks, openUsualDisks } from "./disks.ts";
import { groupsOf } from "./notify.ts";
import { accept, openReceiver, type Receiver } from "./receiver.ts";
import { startRedis, type TestRedis } from "./redis.ts";
import { openTestSimulator, transferPlan } from "./service.ts";
import { PASSWORD } from "./settings.ts";
import { FINE, type Health, type WatchedDaemon } from "./watched-daemon.ts";

const ENGINES = ["embedded", "redis"] as const;

export interface Way {
  /** Completes "the work stops because …". */
  readonly because: string;
  /** Default: both. */
  readonly engines?: readonly (typeof ENGINES)[number][];
  /** Keys of the daemon's task. */
  task?(around: Surroundings): Partial<ChildTask>;
  /** Other servers than a single one. */
  openRedis?(): Promise<OpenedRedis>;
  /** A transfer arrives right after. */
  begin(world: World): Promise<unknown> | unknown;
  lift(world: World): Promise<unknown> | unknown;
  /** The trouble, as in the status. Missing: the daemon repairs it at once, and nothing is reported. */
  readonly trouble?: { readonly what: string; readonly code: string; readonly words: string };
  /** Whether `/readyz` answers 200 meanwhile. Default: false. */
  readonly isReady?: boolean;
  /** The kind of promise that is broken meanwhile. */
  readonly overdue?: string;
  /** The only log lines of level warn and worse. */
  readonly logs: readonly string[];
  /** The only notifications, by their kinds. Those that end with `over` come after the cause is lifted. */
  readonly notices?: readonly string[];
  /** How many downloads are in progress when it begins. Default: 0. */
  readonly inProgress?: number;
  /** How many transfers arrive meanwhile. Default: 1. */
  readonly arrivals?: number;
  /** Why they wait meanwhile, if the status says so. */
  readonly queued?: string;
  /** The inbox with the deliveries. */
  readonly inbox?: string;
  /** A folder in which nothing changes meanwhile. */
  readonly untouched?: string;
  /** How long the trouble is observed. Default: a second, which is several attempts. */
  readonly holdMs?: number;
}

interface OpenedRedis {
  /** The server that ways stop. */
  readonly server: TestRedis;
  readonly task: Partial<ChildTask>;
}

interface Surroundings {
  readonly disks: Disks;
  /** Throws with the embedded engine. */
  redis(): TestRedis;
  readonly service: Simulator;
  /** Gets the notifications. */
  readonly receiver: Receiver;
}

export interface World extends Surroundings {
  readonly daemon: WatchedDaemon;
}

const FIRST = "t1";
const LAST = "z1";

/** At most so many at once: they mostly wait. */
const AT_ONCE = 4;

/** Runs each way on each of its engines. Throws all failures together. */
export async function runWays(ways: readonly Way[]): Promise<void> {
  const runs = ways.flatMap((way) =>
    (way.engines ?? ENGINES).map((engine) => ({ way, engine, name: `${way.because} (${engine})` })),
  );
  const failures: Error[] = [];
  await forEachLimit(runs, AT_ONCE, async ({ way, engine, name }) => {
    const world = await openWorld(way, engine);
    await runWay(way, world).catch((error: Error) => {
      failures.push(new Error(`${name}: ${error.message}\n${world.daemon.lastLines()}`, { cause: error }));
    });
  });
  if (failures.length > 0)
    throw new AggregateError(failures, failures.map(({ message }) => message).join("\n"));
}

async function runWay(way: Way, world: World): Promise<void> {
  const { daemon, disks } = world;
  const { trouble, inbox, untouched = "", holdMs = 1_000 } = way;
  const delivered = () => expect.poll(() => disks.delivered(inbox), { interval: 100 });
  await delivered().toEqual([FIRST]);
  await disks.expectRest();
  await daemon.expectFine();

  const begun = await beginDownloads(world, way.inProgress ?? 0);
  await way.begin(world);
  // The last look at the folder may still have its temporary file.
  const files = () => disks.tree(untouched).filter((path) => !path.endsWith(".part"));
  const before = files();
  const meanwhile = Array.from({ length: way.arrivals ?? 1 }, (_, at) => `t2-${at}`);
  const arrived = [FIRST, ...begun, ...meanwhile];
  const during = expectedDuring(way);
  // A poll that is in progress may still write: it looked at the disk when it began.
  if (way.untouched !== undefined) await expect.poll(daemon.health, { interval: 100 }).toMatchObject(during);
  for (const trackingId of meanwhile) world.service.addTransfer(plan(trackingId));
  if (trouble === undefined) await delivered().toEqual(arrived);
  await expect.poll(daemon.health, { interval: 100 }).toMatchObject(during);
  for (const endMs = Date.now() + holdMs; Date.now() < endMs; await setTimeout(100)) {
    expect(await daemon.health()).toMatchObject(during);
  }
  if (way.queued !== undefined) {
    const queued = meanwhile.map((trackingId) => `${trackingId} ${way.queued}`);
    await expect.poll(async () => (await daemon.health())?.queued.toSorted()).toEqual(queued);
  }
  if (way.untouched !== undefined) expect(files()).toEqual(before);
  await expect.poll(daemon.alarms).toEqual(way.logs);
  const { notices = [] } = way;
  await expect.poll(() => notified(world)).toEqual(notices.filter((kind) => !kind.endsWith("over")));

  await way.lift(world);
  await delivered().toEqual(arrived);
  await daemon.expectFine();
  await expect.poll(() => notified(world)).toEqual(notices);
  world.service.addTransfer(plan(LAST));
  const all = [...arrived, LAST];
  await delivered().toEqual(all);
  await daemon.expectFine();
  await daemon.stop();
  expect(daemon.alarms()).toEqual(way.logs);
  expect(daemon.logged("delivered")).toEqual(all);
}

/** Downloads that take a few seconds. */
async function beginDownloads({ service, daemon }: World, count: number): Promise<string[]> {
  const begun = Array.from({ length: count }, (_, at) => `t1-${at}`);
  for (const transfer of begun) {
    service.addFault({ on: "file", transfer, does: { kind: "drip", bytes: 20, pauseMs: 100 } });
    service.addTransfer(plan(transfer));
  }
  await expect.poll(() => daemon.logged("downloading")).toEqual([FIRST, ...begun]);
  return begun;
}

function expectedDuring({ trouble, isReady = false, overdue }: Way): Partial<Health> | object {
  if (trouble === undefined) return FINE;
  const { what, code, words } = trouble;
  const [kind = ""] = what.split(" ");
  const metrics = { transfer: ["attention"], order: [] }[kind] ?? [kind];
  const reports = [{ what, code, message: expect.stringContaining(words) }];
  return {
    reports,
    ready: isReady,
    metrics,
    ...(overdue === undefined ? {} : { overdue: [overdue] }),
  };
}

function plan(trackingId: string) {
  return transferPlan({ trackingId, files: [{ name: "data.bin", generate: { bytes: 1_000 } }] });
}

function notified({ receiver }: World): string[] {
  const calls = receiver.calls.filter(({ status }) => status < 300);
  return groupsOf({ calls }).map(({ kind, over }) => (over ? `${kind} over` : kind));
}

async function openWorld(way: Way, engine: string): Promise<World> {
  const service = await openTestSimulator({ transfers: [plan(FIRST)] });
  const queue = engine === "redis" ? await (way.openRedis ?? openRedis)() : undefined;
  const around = {
    disks: await openUsualDisks(),
    redis() {
      if (queue === undefined) throw new Error("this way has no Redis");
      return queue.server;
    },
    service,
    receiver: await openReceiver(accept),
  };
  await writeFile(around.disks.at("password"), PASSWORD);
  const notify = around.receiver.url;
  const daemon = around.disks.startDaemon(service, { notify, ...queue?.task, ...way.task?.(around) });
  return { ...around, daemon };
}

async function openRedis(): Promise<OpenedRedis> {
  const server = await startRedis();
  return { server, task: { redis: server.url } };
}
