// @module-tag system
/**
 * I7 nothing silent: each way in which a real disk or Redis stops the work is one trouble of the status that names its cause,
 * lasts as long as the cause, and ends with it. Nothing else is reported, and each transfer is delivered once. Services,
 * receivers and programs that stop it are in test/unit/world/silence.test.ts.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import { forEachLimit } from "../../src/base/concurrency.ts";
import { giveOrder } from "../../src/ledger/orders.ts";
import type { ChildTask } from "../support/daemon-task.ts";
import { type Disks, FULL, LOSSES, openUsualDisks } from "../support/disks.ts";
import { groupsOf } from "../support/notify.ts";
import { accept, openReceiver, type Receiver } from "../support/receiver.ts";
import { REDIS_CAUSES, startCluster, startRedis, startSentinel, type TestRedis } from "../support/redis.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, OPERATOR, PASSWORD } from "../support/settings.ts";
import { FINE, type Health, type WatchedDaemon } from "../support/watched-daemon.ts";

type Causes = Pick<Way, "begin" | "lift">;

const DISK_LOGS = ["a disk cannot be used: work that needs it pauses"];

function disk(code: string, words: string) {
  return { trouble: { what: "disk", code, words }, logs: DISK_LOGS, notices: ["disk", "disk over"] };
}

function scripts(begin: string, lift: string): Causes {
  return { begin: ({ disks }) => disks.run(begin), lift: ({ disks }) => disks.run(lift) };
}

/** Only deliveries to this inbox wait. */
const OWN: Pick<Way, "task" | "inbox" | "queued"> = {
  task: ({ disks }) => ({ mailbox: { inbox: join(disks.folder, "inbox/own") } }),
  inbox: "store/inbox/own",
  queued: "disk",
};

const DISKS: readonly Way[] = [
  ...LOSSES.map(({ because, does, undoes, code, untouched }) => ({
    because,
    ...scripts(does, undoes),
    ...disk(code, untouched.split("/")[0] ?? ""),
    untouched,
  })),
  {
    because: "the inbox of a mailbox is replaced",
    ...OWN,
    ...scripts("mount -t tmpfs tmpfs inbox/own", "umount -l inbox/own"),
    ...disk("DISK_REPLACED", "inbox/own"),
    untouched: "inbox/own",
  },
  {
    because: "the inbox of a mailbox is missing",
    ...OWN,
    ...scripts("mv store/inbox/own store/own", "mv store/own store/inbox/own"),
    ...disk("FOLDER_MISSING", "inbox/own"),
  },
  ...FULL.map(({ because, does, undoes, code }) => ({
    because,
    ...scripts(does, undoes),
    ...disk(code, "No space is left on the disk"),
  })),
];

const QUEUE = {
  engines: ["redis"],
  logs: ["the queue does not work: no new work begins until it does"],
  notices: ["queue", "queue over"],
  arrivals: 10,
  // Longer than the quiet time after which a trouble may end.
  holdMs: 14_000,
} as const;

function queue(code: string, words: string) {
  return { ...QUEUE, trouble: { what: "queue", code, words } };
}

const REDIS: readonly Way[] = [
  ...REDIS_CAUSES.map(({ because, code, words, begin, lift }) => ({
    because,
    ...queue(code, words),
    begin: ({ redis }: World) => begin(redis()),
    lift: ({ redis }: World) => lift(redis()),
  })),
  {
    because: "Redis is flushed: it is filled again at once",
    ...QUEUE,
    notices: [],
    logs: [],
    begin: ({ redis }) => redis().client.flushall(),
    lift: () => {},
  },
  {
    because: "the master is killed, and a sentinel promotes its replica",
    ...queue("QUEUE_UNREACHABLE", "could not be reached"),
    holdMs: 1_000,
    inProgress: 4,
    begin: ({ redis }) => redis().kill(),
    lift: () => {},
    async openRedis() {
      const { port, master } = await startSentinel("orders", "secret");
      const sentinels = [`127.0.0.1:${port}`];
      const task = { redis: master.url, queue: { sentinels, sentinelName: "orders" } };
      return { server: master, task: { ...task, sentinelPassword: "secret" } };
    },
  },
  {
    because: "a master of a cluster is stopped",
    ...queue("QUEUE_UNREACHABLE", "no answer"),
    begin: ({ redis }) => redis().signal("SIGSTOP"),
    lift: ({ redis }) => redis().signal("SIGCONT"),
    async openRedis() {
      const nodes = await startCluster();
      const [first] = nodes;
      if (first === undefined) throw new Error("no cluster");
      const slot = Number(await first.client.call("CLUSTER", "KEYSLOT", "{inlet}"));
      const server = nodes[Math.floor(slot / Math.ceil(16_384 / nodes.length))] ?? first;
      const cluster = nodes.map(({ port }) => `127.0.0.1:${port}`);
      return { server, task: { redis: first.url, queue: { cluster, prefix: "{inlet}" } } };
    },
  },
];

const ORDERS = "inbox/.inlet/orders";

const FILES: readonly Way[] = [
  {
    because: "the folder of orders is read-only",
    async begin({ disks }) {
      const key = { mailbox: MAILBOX, trackingId: "t1", round: 1 };
      await giveOrder(disks.at("store"), { ...key, action: "retry", by: OPERATOR });
      await disks.run(
        `mount --bind store/orders store/orders && mount -o remount,bind,ro store/orders && mount --move store/orders ${ORDERS}`,
      );
    },
    lift: ({ disks }) => disks.run(`mount -o remount,bind,rw ${ORDERS}`),
    trouble: { what: "order retry t1", code: "ORDER_OVERDUE", words: "has not been carried out" },
    isReady: true,
    overdue: "order",
    logs: [
      "an order cannot be carried out, and is retried",
      "something should have happened by now, and has not",
    ],
    notices: ["stalled", "stalled over"],
  },
  {
    because: "the outbox is replaced by a file",
    ...scripts(
      "cd inbox/.inlet && mv outbox outbox.away && touch outbox",
      "cd inbox/.inlet && rm outbox && mv outbox.away outbox",
    ),
    trouble: { what: "handoffs", code: "DISK_REFUSED", words: "outbox" },
    isReady: true,
    logs: ["hand-offs cannot be read or written, and are retried", "waiting"],
    notices: ["handoff", "handoff over"],
  },
  {
    because: "the file with the password is away",
    task: ({ disks }) => ({ password: { file: join(disks.folder, "password") } }),
    ...scripts("mv password away", "mv away password"),
    trouble: { what: "transfer t2-0", code: "retry", words: "password" },
    isReady: true,
    notices: ["refused"],
    logs: ["waiting"],
  },
];

const GROUPS: Readonly<Record<string, readonly Way[]>> = {
  "of a disk": DISKS,
  "of Redis": REDIS,
  "of single folders and files": FILES,
};

describe("I7 nothing silent: the work stops", () => {
  test.each(Object.entries(GROUPS))("because %s", { timeout: 900_000 }, (_name, ways) => runWays(ways));
});

const ENGINES = ["embedded", "redis"] as const;

interface Way {
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

interface World extends Surroundings {
  readonly daemon: WatchedDaemon;
}

// A way begins while all is well, lasts, and ends, and then all is well again.

const FIRST = "t1";
const LAST = "z1";

/** At most so many at once: they mostly wait. */
const AT_ONCE = 4;

/** Runs each way on each of its engines. Throws all failures together. */
async function runWays(ways: readonly Way[]): Promise<void> {
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
