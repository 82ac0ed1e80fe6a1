// @module-tag system
/** Daemons that share an inbox through a real Redis. */
import { once } from "node:events";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Queue } from "bullmq";
import { describe, expect, test } from "vitest";
import { runDaemon } from "../../src/daemon.ts";
import { downloadQueueOf } from "../../src/queue/bullmq-services.ts";
import { daemonSettings, runOnce, startDaemon, type TestDaemon } from "../support/daemon.ts";
import { makeFolder, startChild } from "../support/program.ts";
import { startRedis } from "../support/redis.ts";
import { openTestSimulator, SIGNAL, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, PASSWORD, redisQueue } from "../support/settings.ts";

const MANY = Array.from({ length: 20 }, (_, at) => transferPlan({ trackingId: `t${at}` }));
const ONCE = { mode: "once", stop: SIGNAL, graceMs: 0, onEvent: () => {} } as const;

describe("I2 once, by several daemons", () => {
  test("each transfer is delivered once by any of them, and Redis keeps nothing about it", async () => {
    const redis = await startRedis();
    const simulator = await openTestSimulator({ transfers: MANY });
    const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
    const daemons = [startDaemon(settings), startDaemon(settings), startDaemon(settings)];
    await expect.poll(() => delivered(daemons)).toHaveLength(MANY.length);
    for (const daemon of daemons) await daemon.stop();
    expect(new Set(delivered(daemons).map(({ trackingId }) => trackingId)).size).toBe(MANY.length);
    const keys = await redis.client.keys("*");
    expect(keys.filter((key) => /:download-\w+:t\d/.test(key))).toEqual([]);
    expect(keys.length).toBeLessThan(20);
  });

  test("`once` works beside the others, and does not keep them from polling", async () => {
    const redis = await startRedis();
    const simulator = await openTestSimulator({ transfers: MANY.slice(0, 3) });
    const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
    expect(delivered([await runOnce(settings)])).toHaveLength(3);
    expect(await redis.client.keys("inlet:poll:*")).toEqual([]);
  });

  test("a daemon with the embedded engine and daemons on Redis exclude each other", async () => {
    const redis = await startRedis();
    const simulator = await openTestSimulator({});
    const alone = await daemonSettings([mailboxSettings(simulator)]);
    const shared = { ...alone, queue: redisQueue(redis.url) };
    const first = startDaemon(shared);
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
    await expect(runDaemon(alone, ONCE)).rejects.toMatchObject({ code: "INBOX_HELD" });
    await first.stop();
    const second = startDaemon(alone);
    const polls = simulator.totals().received;
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls);
    await expect(runDaemon(shared, ONCE)).rejects.toMatchObject({ code: "INBOX_HELD" });
    await second.stop();
  });
});

test("I5 no escape: foreign jobs in Redis read, move and remove nothing", async () => {
  const redis = await startRedis();
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
  const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
  const outside = join(settings.inbox, "..", "outside");
  await mkdir(outside);
  await writeFile(join(outside, "precious"), "text");
  const options = { connection: { url: redis.url }, prefix: "inlet" };
  const downloads = new Queue(downloadQueueOf(new URL(simulator.url).origin), options);
  const up = "../../outside";
  const jobs = [
    { mailbox: MAILBOX, trackingId: up, key: up },
    { mailbox: up, trackingId: up, folder: up, key: up },
    { mailbox: { name: up }, trackingId: [up] },
    {},
    "text",
    null,
  ];
  for (const [at, data] of jobs.entries()) {
    await downloads.add("download", data, { jobId: `${up}-${at}`.replaceAll(":", "") });
  }
  const daemon = startDaemon(settings);
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  await expect.poll(() => downloads.getJobCountByTypes("wait", "active")).toBe(0);
  await daemon.stop();
  await downloads.close();
  expect(await readdir(outside)).toEqual(["precious"]);
  expect(delivered([daemon])).toHaveLength(1);
  expect(await readdir(join(settings.work, "staging"))).toEqual([]);
});

describe("roles", () => {
  test("a scheduler polls and does not download; a worker downloads and does not poll", async () => {
    const redis = await startRedis();
    const simulator = await openTestSimulator({ transfers: MANY.slice(0, 3) });
    const settings = await daemonSettings([mailboxSettings(simulator)]);
    const as = (role: "worker" | "scheduler") => ({ ...settings, queue: { ...redisQueue(redis.url), role } });
    const worker = startDaemon(as("worker"));
    await expect.poll(() => redis.client.keys("inlet:download-*:stalled-check")).toHaveLength(1);
    const scheduler = startDaemon(as("scheduler"));
    await expect.poll(() => delivered([worker])).toHaveLength(3);
    expect(new Set(scheduler.changes.map(({ state }) => state))).toEqual(new Set(["discovered"]));
    expect(worker.changes.filter(({ state }) => state === "discovered")).toEqual([]);
  });

  test("a discovered transfer waits for a worker, and a password supplied meanwhile is used", async () => {
    const redis = await startRedis();
    const simulator = await openTestSimulator({ transfers: MANY.slice(0, 1) });
    const settings = await daemonSettings([mailboxSettings(simulator, { passwords: [] })]);
    const as = (role: "worker" | "scheduler") => ({ ...settings, queue: { ...redisQueue(redis.url), role } });
    const scheduler = startDaemon(as("scheduler"));
    await expect.poll(() => scheduler.stateOf("t0")).toBe("discovered");
    const first = startDaemon(as("worker"));
    await expect.poll(() => first.stateOf("t0")).toBe("waiting");
    await first.stop();
    expect(simulator.totals().file).toBe(0);
    await writeFile(join(settings.state, "passwords/t0"), PASSWORD);
    const second = startDaemon(as("worker"));
    await expect.poll(() => second.stateOf("t0")).toBe("delivered");
  });

  test("a worker alone sends no request", async () => {
    const redis = await startRedis();
    const simulator = await openTestSimulator({ transfers: MANY.slice(0, 1) });
    const settings = await daemonSettings([mailboxSettings(simulator)]);
    const worker = startDaemon({ ...settings, queue: { ...redisQueue(redis.url), role: "worker" } });
    await expect.poll(() => redis.client.keys("inlet:download-*:stalled-check")).toHaveLength(1);
    await worker.stop();
    expect(Object.values(simulator.totals()).reduce((sum, count) => sum + count, 0)).toBe(0);
  });
});

describe("a Redis that is away", () => {
  test("at the start: once reports it, and run waits", async () => {
    const redis = await startRedis();
    await redis.kill();
    const simulator = await openTestSimulator({ transfers: MANY.slice(0, 1) });
    const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
    await expect(runDaemon(settings, ONCE)).rejects.toMatchObject({ code: "QUEUE_UNREACHABLE" });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.reports).toEqual(["queue lost"]);
    await redis.start();
    await expect.poll(() => daemon.stateOf("t0")).toBe("delivered");
    await expect.poll(() => daemon.reports).toEqual(["queue lost", "queue back"]);
  });

  test("does not delay the stop of a daemon that waits for it", async () => {
    const redis = await startRedis();
    await redis.kill();
    const simulator = await openTestSimulator({});
    const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.reports).toEqual(["queue lost"]);
    await daemon.stop();
  });

  test("while a daemon runs: running downloads are delivered, and the rest when it is back, although it is empty", async () => {
    const redis = await startRedis();
    const files = [{ name: "slow.bin", generate: { bytes: 200_000 } }];
    const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "slow", files })] });
    simulator.addFault({ on: "file", does: { kind: "drip", bytes: 10_000, pauseMs: 100 } });
    const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("slow")).toBe("downloading");
    await redis.kill();
    await expect.poll(() => daemon.stateOf("slow")).toBe("delivered");
    simulator.addTransfer(transferPlan({ trackingId: "later" }));
    await redis.start();
    await expect.poll(() => daemon.stateOf("later")).toBe("delivered");
    const queueReports = () => daemon.reports.filter((line) => line.startsWith("queue"));
    await expect.poll(queueReports).toEqual(["queue lost", "queue back"]);
    await daemon.stop();
    expect(delivered([daemon])).toHaveLength(2);
  });

  test("does not keep a stopped program from ending", async () => {
    const redis = await startRedis();
    const simulator = await openTestSimulator({});
    const folder = await makeFolder();
    const { url, clientId } = simulator;
    const task = { url, clientId, folder, redis: redis.url, lockMs: 2_000 };
    const child = startChild(task);
    const log: string[] = [];
    child.stdout?.on("data", (chunk) => log.push(String(chunk)));
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
    await redis.kill();
    await expect.poll(() => log.join("")).toContain("QUEUE_UNREACHABLE");
    await setTimeout(1_000);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test("and comes back empty: polls continue, and finished transfers are not repeated", async () => {
    const redis = await startRedis();
    const simulator = await openTestSimulator({ transfers: MANY.slice(0, 2) });
    const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
    const daemon = startDaemon(settings);
    await expect.poll(() => delivered([daemon])).toHaveLength(2);
    await redis.client.flushall();
    simulator.addTransfer(transferPlan({ trackingId: "later" }));
    await expect.poll(() => daemon.stateOf("later")).toBe("delivered");
    expect(delivered([daemon])).toHaveLength(3);
  });
});

test("a Redis that may evict jobs is reported at the start", async () => {
  const redis = await startRedis(["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
  const simulator = await openTestSimulator({});
  const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
  expect((await runOnce(settings)).reports).toEqual(["queue forgets: allkeys-lru"]);
});

function delivered(daemons: readonly TestDaemon[]) {
  return daemons.flatMap(({ changes }) => changes).filter(({ state }) => state === "delivered");
}
