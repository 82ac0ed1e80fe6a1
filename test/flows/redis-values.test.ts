// @module-tag system
/** Values in Redis that are not Inlet's: they are removed, and no work stops because of them. */
import { createHash } from "node:crypto";
import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { DONE, NO_WAIT } from "../../src/model/job.ts";
import { mailboxIdOf } from "../../src/model/transfer.ts";
import { downloadQueueOf } from "../../src/queue/bullmq-services.ts";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { openTestQueue } from "../support/queue.ts";
import { startRedis } from "../support/redis.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, redisQueue } from "../support/settings.ts";

const HUGE = "9007199254740991";
const STRINGS = ["id", "pc", "limiter", "stalled-check"];
const OTHERS = [
  ...["wait", "active", "paused", "prioritized", "delayed", "marker", "completed", "failed", "repeat"],
  ...["waiting-children", "stalled", "claims", "meta", "deferred", "events"],
];

interface Names {
  /** Prefixes of the keys of both queues. */
  readonly polls: string;
  readonly downloads: string;
  /** The id of the mailbox's schedule. */
  readonly id: string;
  /** Its service's field in the hash of deferred polls. */
  readonly service: string;
}

interface Odd {
  readonly what: string;
  /** Part of the key that is logged; empty if nothing is removed. */
  readonly key: string;
  write(client: Redis, names: Names): Promise<unknown>;
}

async function writeOtherTypes(client: Redis, prefix: string): Promise<void> {
  await client.del(...[...STRINGS, ...OTHERS].map((name) => prefix + name));
  for (const name of STRINGS) await client.rpush(prefix + name, "x");
  for (const name of OTHERS) await client.set(prefix + name, "x");
}

const VALUES: readonly Odd[] = [
  {
    what: "every key of the polls has another type",
    key: "deferred",
    write: (client, { polls }) => writeOtherTypes(client, polls),
  },
  {
    what: "every key of the downloads has another type",
    key: "marker",
    write: (client, { downloads }) => writeOtherTypes(client, downloads),
  },
  {
    what: "polls are deferred for ever",
    key: "deferred",
    write: (client, { polls, id, service }) =>
      client.hset(`${polls}deferred`, { [id]: HUGE, [service]: HUGE }),
  },
  {
    what: "polls are deferred by a text",
    key: "deferred",
    write: (client, { polls, id }) => client.hset(`${polls}deferred`, id, "x"),
  },
  {
    what: "a service is limited for ever",
    key: "limiter",
    write: (client, { downloads }) => client.set(`${downloads}limiter`, HUGE, "PX", 10 ** 12),
  },
  {
    what: "a limit is a text",
    key: "limiter",
    write: (client, { downloads }) => client.set(`${downloads}limiter`, "x"),
  },
  {
    what: "queues are paused",
    key: "meta paused",
    write: (client, { polls, downloads }) =>
      Promise.all([polls, downloads].map((prefix) => client.hset(`${prefix}meta`, "paused", 1))),
  },
  {
    what: "queues run no job at once",
    key: "meta concurrency",
    write: (client, { polls, downloads }) =>
      Promise.all(
        [polls, downloads].map((prefix) => client.hset(`${prefix}meta`, { concurrency: 0, max: 0 })),
      ),
  },
  {
    what: "the number of events is a text",
    key: "meta opts.maxLenEvents",
    write: (client, { polls, downloads }) =>
      Promise.all([polls, downloads].map((prefix) => client.hset(`${prefix}meta`, "opts.maxLenEvents", "x"))),
  },
  {
    what: "counters overflow",
    key: "pc",
    write: (client, { polls, downloads }) =>
      client.mset(`${polls}id`, "9223372036854775807", `${downloads}id`, "x", `${downloads}pc`, "x"),
  },
  {
    what: "the next poll is due in a thousand years",
    key: "repeat",
    async write(client, { polls, id }) {
      await client.zadd(`${polls}repeat`, HUGE, id);
      await client.del(`${polls}delayed`, `${polls}wait`);
    },
  },
  {
    what: "the interval of a schedule is a thousand years",
    key: "repeat",
    write: (client, { polls, id }) => client.hset(`${polls}repeat:${id}`, "every", 10 ** 14),
  },
  {
    what: "a schedule has another type",
    key: "",
    async write(client, { polls, id }) {
      await client.del(`${polls}repeat:${id}`);
      await client.set(`${polls}repeat:${id}`, "x");
    },
  },
  {
    what: "a schedule polls another mailbox",
    key: "repeat",
    write: (client, { polls, id }) => client.hset(`${polls}repeat:${id}`, "data", '{"mailbox":"other"}'),
  },
  {
    what: "jobs have no data that can be read, or another type",
    key: ":odd",
    async write(client, { polls, downloads }) {
      for (const prefix of [polls, downloads]) {
        await client.hset(`${prefix}odd1`, { data: "{", timestamp: "x" });
        await client.set(`${prefix}odd2`, "x");
        await client.lpush(`${prefix}wait`, "odd1", "odd2");
        await client.zadd(`${prefix}marker`, 0, "0");
      }
    },
  },
  {
    what: "delayed jobs are due in a thousand years",
    key: ":late",
    async write(client, { polls }) {
      await client.zadd(`${polls}delayed`, HUGE, "late");
      await client.hset(`${polls}late`, { data: "{}", timestamp: Date.now() });
    },
  },
];

test.each(VALUES)("work continues although $what", async ({ write, key }) => {
  const redis = await startRedis();
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
  const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
  const daemon = startDaemon(settings);
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  const origin = new URL(simulator.url).origin;
  await write(redis.client, {
    polls: "inlet:poll:",
    downloads: `inlet:${downloadQueueOf(origin)}:`,
    id: idOf(mailboxIdOf(MAILBOX)),
    service: `service-${idOf(origin)}`,
  });
  simulator.addTransfer(transferPlan({ trackingId: "t2" }));
  await expect.poll(() => daemon.stateOf("t2")).toBe("delivered");
  const removed = () => daemon.reports.filter((line) => line.startsWith("removed: ") && line.includes(key));
  if (key !== "") await expect.poll(removed).not.toEqual([]);
  simulator.addTransfer(transferPlan({ trackingId: "t3" }));
  await expect.poll(() => daemon.stateOf("t3")).toBe("delivered");
  // A trouble that such a value causes ends with it, and each key is reported once.
  await expect
    .poll(() => daemon.reports.findLast((line) => line.startsWith("queue")) ?? "queue back")
    .toBe("queue back");
  expect(removed()).toEqual([...new Set(removed())]);
  expect(daemon.changes.filter(({ state }) => state === "delivered")).toHaveLength(3);
});

test.each([
  ["is in no list, because Redis refused a script half-way", "hash"],
  ["has another type", "string"],
])("a job runs although its key %s", async (_name, type) => {
  const redis = await startRedis();
  const ran: string[] = [];
  const queue = await openTestQueue(redis);
  onTestFinished(() => queue.close(0));
  await queue.start({
    poll: async () => NO_WAIT,
    async download({ trackingId }) {
      ran.push(trackingId);
      return DONE;
    },
  });
  const key = `inlet:${downloadQueueOf("service")}:a`;
  if (type === "string") await redis.client.set(key, "x");
  else await redis.client.hset(key, { data: '{"mailbox":"m","trackingId":"a"}', timestamp: 1 });
  await queue.add({ key: "a", mailbox: "m", trackingId: "a", expiresMs: 0 });
  await expect.poll(() => ran).toEqual(["a"]);
});

test("polls continue after Redis has refused to schedule the next one", async () => {
  const redis = await startRedis();
  const polls = new Queue("poll", { connection: { url: redis.url }, prefix: "inlet" });
  onTestFinished(() => polls.close());
  const simulator = await openTestSimulator({});
  const settings = await daemonSettings([mailboxSettings(simulator)], { queue: redisQueue(redis.url) });
  startDaemon(settings);
  await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
  // As a script that was refused half-way: the job is in no list.
  await expect
    .poll(async () => {
      const [id = ""] = await redis.client.zrange("inlet:poll:delayed", "0", "0");
      return redis.client.zrem("inlet:poll:delayed", id);
    })
    .toBe(1);
  const before = simulator.totals().received;
  await expect.poll(() => simulator.totals().received).toBeGreaterThan(before + 5);
});

function idOf(name: string): string {
  return createHash("sha256").update(name).digest("hex").slice(0, 24);
}
