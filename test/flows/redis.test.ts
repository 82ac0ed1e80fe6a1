// @module-tag system
/** Daemons that share an inbox through a real Redis. */
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Queue } from "bullmq";
import { describe, expect, test } from "vitest";
import type { MailboxSettings } from "../../src/config/settings.ts";
import { runDaemon } from "../../src/daemon.ts";
import { joinMembers } from "../../src/inbox/members.ts";
import { downloadQueueOf } from "../../src/queue/bullmq-services.ts";
import { daemonSettings, startDaemon, type TestDaemon } from "../support/daemon.ts";
import { startRedis } from "../support/redis.ts";
import { openTestSimulator, SIGNAL, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, PASSWORD, redisQueue } from "../support/settings.ts";

const ONCE = { mode: "once", stop: SIGNAL, graceMs: 0, onEvent: () => {} } as const;

describe("I2 once, by several daemons", () => {
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

test("I2 once, beside an earlier version: a daemon records nothing until the other one has ended", async () => {
  const redis = await startRedis();
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
  const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
  const { work, state } = settings;
  await mkdir(work, { recursive: true });
  await joinMembers(work, state, 4);
  await expect(runDaemon(settings, ONCE)).rejects.toMatchObject({ code: "MEMBER_OLDER" });
  expect(await readdir(work)).not.toContain("format");
  const daemon = startDaemon(settings);
  await expect.poll(() => daemon.reports).toContain("disk full");
  expect(await readdir(work)).not.toContain("format");
  await rm(join(work, "members"), { recursive: true });
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  await daemon.stop();
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
    const { redis, as } = await setUp(3);
    const worker = startDaemon(as("worker"));
    await expect.poll(() => redis.client.keys("inlet:download-*:stalled-check")).toHaveLength(1);
    const scheduler = startDaemon(as("scheduler"));
    await expect.poll(() => delivered([worker])).toHaveLength(3);
    expect(new Set(scheduler.changes.map(({ state }) => state))).toEqual(new Set(["discovered"]));
    expect(worker.changes.filter(({ state }) => state === "discovered")).toEqual([]);
  });

  test("a discovered transfer waits for a worker, and a password supplied meanwhile is used", async () => {
    const { simulator, settings, as } = await setUp(1, { passwords: [] });
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
    const { redis, simulator, as } = await setUp(1);
    const worker = startDaemon(as("worker"));
    await expect.poll(() => redis.client.keys("inlet:download-*:stalled-check")).toHaveLength(1);
    await worker.stop();
    expect(simulator.requests()).toEqual([]);
  });

  async function setUp(count: number, mailbox: Partial<MailboxSettings> = {}) {
    const redis = await startRedis();
    const transfers = Array.from({ length: count }, (_, at) => transferPlan({ trackingId: `t${at}` }));
    const simulator = await openTestSimulator({ transfers });
    const settings = await daemonSettings([mailboxSettings(simulator, mailbox)]);
    const as = (role: "worker" | "scheduler") => ({ ...settings, queue: { ...redisQueue(redis.url), role } });
    return { redis, simulator, settings, as };
  }
});

function delivered(daemons: readonly TestDaemon[]) {
  return daemons.flatMap(({ changes }) => changes).filter(({ state }) => state === "delivered");
}
