// @module-tag system
/** Poll schedules shared by several processes on a real Redis. */
import { Queue } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import type { PollSchedule } from "../../src/model/job.ts";
import { connect } from "../../src/queue/bullmq-connection.ts";
import { Schedules } from "../../src/queue/bullmq-schedules.ts";
import { startRedis, type TestRedis } from "../support/redis.ts";
import { redisSettings } from "../support/settings.ts";

const HOUR_MS = 3_600_000;
const CHECK_MS = 50;

test("processes with different mailboxes leave each other's schedules alone, without an extra poll", async () => {
  const redis = await startRedis();
  const one = openSchedules(redis);
  const other = openSchedules(redis);
  await one.set(hourly("a", "b"));
  await other.set(hourly("b", "c", "d"));
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
  await one.set(hourly("a"));
  await other.set([{ mailbox: "a", everyMs: 2 * HOUR_MS }]);
  const first = await describe(redis, one.queue);
  expect(first.intervals).toEqual([2 * HOUR_MS]);
  await one.queue.drain();
  await checks();
  expect(await describe(redis, one.queue)).toEqual({ ...first, polls: 0 });
});

test("a mailbox that one process drops is scheduled again while another has it, without an extra poll", async () => {
  const redis = await startRedis();
  const one = openSchedules(redis);
  const other = openSchedules(redis);
  await one.set(hourly("a", "b"));
  await other.set(hourly("a", "b"));
  await one.queue.drain();
  await one.set(hourly("a"));
  await expect.poll(async () => (await describe(redis, one.queue)).mailboxes).toEqual(["a", "b"]);
  expect((await describe(redis, one.queue)).polls).toBe(0);
  await other.set(hourly("a"));
  await checks();
  expect((await describe(redis, one.queue)).mailboxes).toEqual(["a"]);
});

test("after Redis has lost all schedules, each mailbox is polled at once and then scheduled", async () => {
  const redis = await startRedis();
  const one = openSchedules(redis);
  await one.set(hourly("a", "b"));
  await redis.client.flushall();
  await expect.poll(() => describe(redis, one.queue)).toMatchObject({ mailboxes: ["a", "b"], polls: 2 });
});

function hourly(...names: readonly string[]) {
  return names.map((mailbox) => ({ mailbox, everyMs: HOUR_MS }));
}

/** Of one process. */
function openSchedules({ url }: TestRedis) {
  const client = connect(redisSettings(url));
  const queue = new Queue("poll", { connection: client, prefix: "inlet", skipVersionCheck: true });
  const schedules = new Schedules(queue, client, () => {}, CHECK_MS);
  onTestFinished(async () => {
    schedules.close();
    // Its last commands may fail.
    client.disconnect();
    await queue.close().catch(() => {});
  });
  const set = (polls: readonly PollSchedule[]) => {
    schedules.want(polls);
    return schedules.write([]);
  };
  return { queue, set };
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

/** Long enough for several checks of every process. */
async function checks(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20 * CHECK_MS));
}
