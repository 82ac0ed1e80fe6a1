// @module-tag system
/**
 * I7 nothing silent: of a Redis that answers, but does not work, the status says why, and the work continues without a
 * restart.
 */
import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { REDIS_ANSWER_BYTES } from "../../src/base/bounds.ts";
import type { Settings } from "../../src/config/settings.ts";
import { runDaemon } from "../../src/daemon.ts";
import type { Status } from "../../src/model/status.ts";
import { connect } from "../../src/queue/bullmq-connection.ts";
import { faultOfRedis } from "../../src/queue/bullmq-errors.ts";
import { downloadQueueOf } from "../../src/queue/bullmq-services.ts";
import { COMMANDS } from "../../src/queue/bullmq-watch.ts";
import { readApi } from "../support/api.ts";
import { daemonSettings, startDaemon, type TestDaemon } from "../support/daemon.ts";
import { REDIS_CAUSES, startCluster, startRedis, type TestRedis } from "../support/redis.ts";
import { openTestSimulator, SIGNAL, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, pageSettings, redisQueue } from "../support/settings.ts";

test("of a Redis that does not work when a daemon starts, the status says why, whatever the cause", async () => {
  // All at once: they mostly wait.
  const runs = REDIS_CAUSES.map(async ({ because, begin, lift, words }) => {
    const redis = await startRedis();
    const { settings } = await setUp(redis, "t1");
    await begin(redis);
    const daemon = startDaemon(settings);
    await expect.poll(() => queueTrouble(daemon), { message: because }).toContain(words);
    expect(daemon.changes).toEqual([]);
    await lift(redis);
    await expectRecovery(daemon, 1);
  });
  await Promise.all(runs);
});

test.each(["one server", "a cluster"])(
  "a value larger than any of Inlet's is not read as a whole, on no connection: %s",
  async (kind) => {
    const [redis] = kind === "a cluster" ? await startCluster() : [await startRedis()];
    const { port } = redis ?? {};
    const node = `127.0.0.1:${port}`;
    const client = connect({
      ...{ url: new URL(`redis://${node}`), username: undefined, password: undefined, ca: undefined },
      ...{ sentinels: [], sentinelName: undefined, sentinelPassword: undefined, prefix: "inlet" },
      cluster: kind === "a cluster" ? [node] : [],
    });
    onTestFinished(() => client.disconnect());
    await client.setrange("large", 64 * 1024 ** 2, "x");
    await client.set("small", "x".repeat(1024 ** 2));
    // As BullMQ does it.
    const duplicate = (client as Redis).duplicate();
    onTestFinished(() => duplicate.disconnect());
    for (const each of [client, duplicate]) {
      each.on("error", () => {});
      const error = await each.get("large").catch((failed: unknown) => failed);
      const odd = expect.stringContaining("a key holds a value that is not Inlet's");
      expect(faultOfRedis(error, node)).toMatchObject({ code: "QUEUE_REFUSED", message: odd });
      // Together they are larger.
      const all = await Promise.all(Array.from({ length: 20 }, () => each.get("small")));
      expect(all.map((text) => text?.length)).toEqual(Array(20).fill(1024 ** 2));
    }
  },
);

test("a job that somebody else made too large is told, and keeps no other job from running", async () => {
  const redis = await startRedis();
  const { settings, simulator } = await setUp(redis, "t1");
  const options = { connection: { url: redis.url }, prefix: "inlet" };
  const downloads = new Queue(downloadQueueOf(new URL(simulator.url).origin), options);
  onTestFinished(() => downloads.close());
  const trackingId = "x".repeat(2 * REDIS_ANSWER_BYTES);
  await downloads.add("download", { mailbox: MAILBOX, trackingId }, { jobId: "large" });
  const daemon = startDaemon(settings);
  await expect.poll(() => queueTrouble(daemon)).toContain("a key holds a value that is not Inlet's");
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
});

test("`once` does not wait for a Redis that is full", async () => {
  const redis = await startRedis(["--maxmemory", "1"]);
  const { settings } = await setUp(redis, "t1");
  const once = { mode: "once", stop: SIGNAL, graceMs: 0, onEvent: () => {} } as const;
  await expect(runDaemon(settings, once)).rejects.toMatchObject({
    code: "QUEUE_REFUSED",
    message: expect.stringContaining("it is full"),
  });
});

test("the status shows the present cause", async () => {
  const redis = await startRedis();
  const { settings } = await setUp(redis, "t1");
  const daemon = startDaemon(settings);
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  await redis.client.config("SET", "maxmemory", "1");
  await expect.poll(() => queueTrouble(daemon)).toContain("it is full");
  await redis.client.call("ACL", "SETUSER", "default", "-set");
  await redis.client.config("SET", "maxmemory", "0");
  await expect.poll(() => queueTrouble(daemon)).toContain("the command SET");
  await redis.client.call("ACL", "SETUSER", "default", "+set");
  await expectRecovery(daemon, 1);
});

test("every command that a working daemon uses is probed, and may be all that its user may do", async () => {
  const redis = await startRedis();
  await redis.client.call("ACL", "SETUSER", "inlet", "on", ">secret", "~inlet:*", "&*", "+@all", "-@admin");
  const { settings, simulator } = await setUp(redis, "t1");
  const url = new URL(redis.url);
  Object.assign(url, { username: "inlet", password: "secret" });
  await redis.client.config("RESETSTAT");
  const daemon = startDaemon({ ...settings, queue: redisQueue(url.href) });
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  simulator.addTransfer(transferPlan({ trackingId: "t2", password: "unknown" }));
  await expect.poll(() => daemon.stateOf("t2")).toBe("waiting");
  const stats = await redis.client.info("commandstats");
  await daemon.stop();
  expect(daemon.reports.filter((line) => line.startsWith("queue"))).toEqual([]);
  const used = [...stats.matchAll(/^cmdstat_([\w|]+):/gm)].map(([, name = ""]) => name);
  const probed = new Set([
    ...COMMANDS.map(([name]) => name),
    "eval",
    "evalsha",
    "multi",
    "exec",
    "rpoplpush",
  ]);
  const connecting = /^(client|config|info|auth|hello|command|select|ping)\b/;
  expect(used.filter((name) => !probed.has(name) && !connecting.test(name))).toEqual([]);
});

async function setUp(redis: TestRedis, trackingId: string) {
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId })] });
  const settings: Settings = await daemonSettings([mailboxSettings(simulator)], {
    queue: redisQueue(redis.url),
    http: pageSettings(),
  });
  return { simulator, settings };
}

/** The message of the queue's trouble; empty if there is none. */
async function queueTrouble(daemon: TestDaemon): Promise<string> {
  const { troubles } = (await readApi(new URL("/api/status", await daemon.page))) as Status;
  return troubles.find(({ what }) => what === "queue")?.message ?? "";
}

/** The trouble ends, and each transfer is delivered once. */
async function expectRecovery(daemon: TestDaemon, deliveries: number): Promise<void> {
  const delivered = () => daemon.changes.filter(({ state }) => state === "delivered");
  await expect.poll(() => delivered().length).toBe(deliveries);
  await expect.poll(() => queueTrouble(daemon)).toBe("");
  expect(new Set(delivered().map(({ trackingId }) => trackingId)).size).toBe(deliveries);
  expect(delivered()).toHaveLength(deliveries);
}
