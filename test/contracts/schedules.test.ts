// @module-tag system
/** Poll schedules shared by several processes on a real Redis. */
import { Queue } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../src/queue/bullmq-connection.ts";
import { Schedules } from "../../src/queue/bullmq-schedules.ts";
import { startRedis, type TestRedis } from "../support/redis.ts";
import { redisSettings } from "../support/settings.ts";

const HOUR_MS = 3_600_000;
const CHECK_MS = 50;
const EVENTS = { failed() {}, removed() {} };

test("processes with different mailboxes leave each other's schedules alone, without an extra poll", async () => {
  const redis = await startRedis();
  const one = openSchedules(redis);
  const other = openSchedules(redis);
  await one.schedules.set(hourly("a", "b"), []);
  await other.schedules.set(hourly("b", "c", "d"), []);
  const first = await describe(redis, one.queue);
  expect(first.mailboxes).toEqual(["a", "b", "c", "d"]);
  expect(first.polls).toBe(4);
  await one.queue.drain();
  await checks();
  expect(await describe(redis, one.queue)).toEqual({ ...first, polls: 0 });
});

test("processes with different intervals do not undo each other: the last start wins", async () => {
  const redis = await startRedis();
  const one = openSchedules(redis);
  const other = openSchedules(redis);
  await one.schedules.set(hourly("a"), []);
  await other.schedules.set([{ mailbox: "a", everyMs: 2 * HOUR_MS }], []);
  const first = await describe(redis, one.queue);
  expect(first.intervals).toEqual([2 * HOUR_MS]);
  await one.queue.drain();
  await checks();
  expect(await describe(redis, one.queue)).toEqual({ ...first, polls: 0 });
});

test("a mailbox that one process drops stays scheduled while another has it", async () => {
  const redis = await startRedis();
  const one = openSchedules(redis);
  const other = openSchedules(redis);
  await one.schedules.set(hourly("a", "b"), []);
  await other.schedules.set(hourly("a", "b"), []);
  await one.schedules.set(hourly("a"), []);
  await checks();
  expect((await describe(redis, one.queue)).mailboxes).toEqual(["a", "b"]);
  await other.schedules.set(hourly("a"), []);
  await expect.poll(async () => (await describe(redis, one.queue)).mailboxes).toEqual(["a"]);
});

test("a mailbox of a process that has ended or died is removed by the others", async () => {
  const redis = await startRedis();
  const one = openSchedules(redis);
  const ended = openSchedules(redis);
  const died = openSchedules(redis);
  await ended.schedules.set(hourly("ended"), []);
  await died.schedules.set(hourly("died"), []);
  await ended.schedules.close();
  await one.schedules.set(hourly("a"), []);
  expect((await describe(redis, one.queue)).mailboxes).toEqual(["a", "died"]);
  died.kill();
  // Its claims would expire only after a minute.
  for (const key of await claimsIn(redis)) await redis.client.pexpire(key, 1);
  await expect.poll(async () => (await describe(redis, one.queue)).mailboxes).toEqual(["a"]);
  await expect.poll(() => redis.client.smembers("inlet:poll:claims")).toHaveLength(1);
});

test("every claim expires, and is renewed after Redis has lost it", async () => {
  const redis = await startRedis();
  const one = openSchedules(redis);
  await one.schedules.set(hourly("a", "b"), []);
  const [claims = "", ...more] = await claimsIn(redis);
  expect(more).toEqual([]);
  expect(await redis.client.pttl(claims)).toBeGreaterThan(0);
  await redis.client.flushall();
  await expect.poll(async () => (await describe(redis, one.queue)).mailboxes).toEqual(["a", "b"]);
  expect(await redis.client.scard(claims)).toBe(2);
  await one.schedules.close();
  expect(await redis.client.keys("inlet:poll:claims*")).toEqual([]);
});

function hourly(...names: readonly string[]) {
  return names.map((mailbox) => ({ mailbox, everyMs: HOUR_MS }));
}

/** Of one process. */
function openSchedules({ url }: TestRedis) {
  const client = connect(redisSettings(url));
  const queue = new Queue("poll", { connection: client, prefix: "inlet", skipVersionCheck: true });
  const schedules = new Schedules(queue, client, EVENTS, CHECK_MS);
  const kill = () => {
    // Its last commands may fail.
    client.disconnect();
  };
  onTestFinished(async () => {
    kill();
    await schedules.close();
    await queue.close().catch(() => {});
  });
  return { schedules, queue, kill };
}

/** The scheduled mailboxes, their next polls, and the number of polls added so far. */
async function describe({ client }: TestRedis, queue: Queue) {
  const schedulers = await queue.getJobSchedulers();
  const found = schedulers.map(({ template, every, next }) => ({ ...template?.data, every, next }));
  const sorted = found.toSorted((a, b) => (a.mailbox < b.mailbox ? -1 : 1));
  return {
    mailboxes: sorted.map(({ mailbox }) => mailbox),
    intervals: sorted.map(({ every }) => Number(every)),
    next: sorted.map(({ next }) => next),
    polls: await client.llen("inlet:poll:wait"),
  };
}

function claimsIn({ client }: TestRedis): Promise<string[]> {
  return client.keys("inlet:poll:claims:*");
}

/** Long enough for several checks of every process. */
async function checks(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20 * CHECK_MS));
}
