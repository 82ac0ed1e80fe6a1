/** The contract of all engines. */
import { setTimeout } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Outage } from "../../src/base/outage.ts";
import {
  DONE,
  type Next,
  NO_WAIT,
  POLLS_AT_ONCE,
  type PollWait,
  type Services,
  type TransferJob,
} from "../../src/model/job.ts";
import { type BullOptions, openBullQueue } from "../../src/queue/bullmq.ts";
import { downloadQueueOf } from "../../src/queue/bullmq-services.ts";
import { createEmbeddedQueue } from "../../src/queue/embedded.ts";
import type { Handlers, JobQueue } from "../../src/queue/port.ts";
import { startRedis, type TestRedis } from "../support/redis.ts";
import { redisSettings } from "../support/settings.ts";
import { openModelQueue } from "../world/engine/engine.ts";
import { SharedStore } from "../world/engine/store.ts";
import { Random } from "../world/ground/random.ts";

/** `services`: the service of each mailbox. */
type Create = (
  slots: number | (() => number),
  services?: Readonly<Record<string, string>>,
  mayFreeSlots?: boolean,
) => Promise<JobQueue>;

const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2026, 5, 1);

const embedded: Create = async (slots, services) =>
  createEmbeddedQueue({ slots: asked(slots), services: constant(services), random: () => 0.5 });

/** Opens the engine of one of several processes. */
type Join = (options?: Partial<BullOptions>) => Promise<JobQueue>;

const onRedis = async (): Promise<Join> => {
  const redis = await startRedis();
  return (options) => openTestQueue(redis, options);
};

const onStore = async (): Promise<Join> => {
  const store = new SharedStore({ nowMs: () => performance.now(), random: new Random(1) });
  const random = new Random(2);
  return async (options) => openModelQueue(store, { ...defaults(), random: () => random.next(), ...options });
};

/** The engine of one process alone. */
function alone(openFleet: () => Promise<Join>): Create {
  return async (slots, services, mayFreeSlots = false) => {
    const join = await openFleet();
    return join({ slots: asked(slots), services: constant(services), mayFreeSlots: () => mayFreeSlots });
  };
}

function asked(slots: number | (() => number)): () => number {
  return typeof slots === "number" ? () => slots : slots;
}

describe("the engine embedded", () => testEngine(embedded));
describe("the engine of worlds", () => testEngine(alone(onStore)));
describe("the engine bullmq", { tags: ["system"] }, () => testEngine(alone(onRedis)));

describe("several processes of the engine of worlds", () => testFleet(onStore));
describe("several processes of the engine bullmq", { tags: ["system"] }, () => testFleet(onRedis));

function testEngine(create: Create): void {
  test("runs a job once, however often it is added while queued or running", async () => {
    const { queue, ran, release } = await start(create, 1);
    for (let round = 0; round < 3; round++) await queue.add(job("a"));
    await expect.poll(() => ran).toEqual(["a"]);
    await queue.add(job("a"));
    release();
    await queue.idle();
    expect(ran).toEqual(["a"]);
    await queue.add(job("a"));
    release();
    await expect.poll(() => ran).toEqual(["a", "a"]);
  });

  test("a changed number of slots applies to jobs that start after the next schedule", async () => {
    let slots = 1;
    const { queue, ran, release, running } = await start(create, () => slots);
    for (const [at, key] of ["a", "b", "c", "d", "e"].entries()) await queue.add(job(key, "m", at));
    await expect.poll(() => ran).toEqual(["a"]);
    slots = 3;
    await queue.schedule([]);
    // An engine may begin more jobs only when one has ended.
    release();
    await expect.poll(running).toBe(3);
    expect(ran).toEqual(["a", "b", "c", "d"]);
    slots = 1;
    await queue.schedule([]);
    release();
    release();
    await expect.poll(running).toBe(1);
    expect(ran).toHaveLength(4);
    release();
    await expect.poll(() => ran).toEqual(["a", "b", "c", "d", "e"]);
    expect(running()).toBe(1);
  });

  test("runs the job that expires first, and never exceeds the slots", async () => {
    const { queue, ran, release, running } = await start(create, 1);
    await queue.add(job("first"));
    await expect.poll(() => ran).toEqual(["first"]);
    await queue.add(job("late", "m", 3));
    await queue.add(job("soon", "m", 1));
    await queue.add(job("later", "m", 2));
    for (const count of [2, 3, 4]) {
      expect(running()).toBe(1);
      release();
      await expect.poll(() => ran).toHaveLength(count);
    }
    expect(ran).toEqual(["first", "soon", "later", "late"]);
    release();
  });

  test("I6 no contagion: keeps a slot for another mailbox while all jobs of one mailbox are stuck", async () => {
    const { queue, ran } = await start(create, 2, { stuck: "s", fine: "s" });
    for (const key of ["s1", "s2", "s3"]) await queue.add(job(key, "stuck"));
    await expect.poll(() => ran).toEqual(["s1"]);
    await queue.add(job("f1", "fine"));
    await expect.poll(() => ran).toEqual(["s1", "f1"]);
  });

  test("I6 no contagion: jobs that have given their slot back keep no other mailbox from its slot", async () => {
    const ran: string[] = [];
    const waiting: (() => void)[] = [];
    const queue = await begin(create(2, { slow: "s", fine: "s" }, true), {
      async download({ trackingId, mailbox }, signal, freeSlot) {
        ran.push(trackingId);
        if (mailbox === "fine") return DONE;
        freeSlot();
        freeSlot();
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
        return DONE;
      },
    });
    for (const key of ["s1", "s2", "s3", "s4"]) await queue.add(job(key, "slow"));
    // One without a slot, and one with the slot that the service always has.
    await expect.poll(() => ran).toHaveLength(2);
    for (const key of ["f1", "f2", "f3"]) await queue.add(job(key, "fine"));
    await expect.poll(() => ran.filter((key) => key.startsWith("f"))).toHaveLength(3);
    expect(ran).toHaveLength(5);
    while (ran.length < 7) {
      waiting.shift()?.();
      await expect.poll(() => waiting.length > 0 || ran.length >= 7).toBe(true);
    }
    for (const release of waiting) release();
    await queue.idle();
    expect(ran.toSorted()).toEqual(["f1", "f2", "f3", "s1", "s2", "s3", "s4"]);
  });

  test("I6 no contagion: a slow service with hundreds of jobs does not delay downloads of another service", async () => {
    const { queue, ran, running } = await start(create, 2, { s1: "slow", s2: "slow", fine: "fine" });
    // They expire first, so they would run first.
    const slow = Array.from({ length: 300 }, (_, at) => job(`slow${at}`, at % 2 ? "s1" : "s2"));
    for (const it of slow) await queue.add(it);
    await expect.poll(() => ran).toHaveLength(2);
    for (const key of ["f1", "f2"]) await queue.add(job(key, "fine", 10));
    await expect.poll(() => ran.slice(2), { timeout: 10_000 }).toEqual(["f1"]);
    expect(running()).toBe(3);
  });

  test("runs a job again after its delay, or at once with `runNow`", async () => {
    const nexts: Next[] = [{ kind: "again", afterMs: 30 }, { kind: "again", afterMs: 3_600_000 }, DONE];
    const ran: number[] = [];
    const queue = await begin(create(1), {
      download: async () => {
        ran.push(ran.length);
        return nexts[ran.length - 1] ?? DONE;
      },
    });
    await queue.add(job("a"));
    await expect.poll(() => ran).toHaveLength(2);
    await queue.add(job("a"));
    await queue.idle();
    expect(ran).toHaveLength(2);
    await queue.runNow(job("a"));
    await expect.poll(() => ran).toHaveLength(3);
  });

  test.each<Next>([DONE, { kind: "again", afterMs: HOUR_MS }])(
    "runs a running job once more after `runNow` (%o)",
    async (next) => {
      const { queue, ran, release } = await start(create, 1, undefined, next);
      await queue.add(job("a"));
      await expect.poll(() => ran).toEqual(["a"]);
      for (let round = 0; round < 3; round++) await queue.runNow(job("a"));
      expect(ran).toEqual(["a"]);
      release();
      await expect.poll(() => ran, { timeout: 10_000 }).toEqual(["a", "a"]);
      release();
      await setTimeout(400);
      expect(ran).toEqual(["a", "a"]);
    },
  );

  test("is idle only after jobs that were deferred have run too", async () => {
    const ran: string[] = [];
    const queue = await begin(create(2, { m: "s", n: "s" }), {
      async download({ trackingId }) {
        await setTimeout(300);
        ran.push(trackingId);
        return DONE;
      },
    });
    for (const key of ["a", "b", "c"]) await queue.add(job(key));
    await queue.idle();
    expect(ran.toSorted()).toEqual(["a", "b", "c"]);
  });

  test("counts jobs that wait for a slot, also if the last slot is reserved for another mailbox", async () => {
    const { queue, ran, release } = await start(create, 2, { m: "s", n: "s" });
    for (const key of ["a", "b", "c"]) await queue.add(job(key));
    await expect.poll(() => ran).toHaveLength(1);
    await setTimeout(300);
    await expect.poll(() => queue.depth(), { timeout: 10_000 }).toBe(2);
    for (const count of [2, 3]) {
      release();
      await expect.poll(() => ran).toHaveLength(count);
    }
    await expect.poll(() => queue.depth(), { timeout: 10_000 }).toBe(0);
  });

  test("neither starts nor counts jobs of a service that asked for fewer requests, and continues with other services", async () => {
    const { queue, ran } = await startLimited(create, { kind: "again", afterMs: HOUR_MS, limitMs: HOUR_MS });
    await queue.add(job("limited"));
    await expect.poll(() => ran).toEqual(["limited"]);
    await queue.add(job("same mailbox"));
    await queue.add(job("same service", "n"));
    await queue.add(job("another service", "other"));
    await queue.idle();
    expect(ran).toEqual(["limited", "another service"]);
    expect(await queue.depth()).toBe(0);
  });

  test("starts the jobs of such a service when its limit is over", async () => {
    const { queue, ran, sinceLimitMs } = await startLimited(create, LIMIT);
    await queue.add(job("limited"));
    await expect.poll(() => ran).toEqual(["limited"]);
    await queue.add(job("same mailbox"));
    await queue.add(job("same service", "n"));
    await expect.poll(() => ran.toSorted()).toEqual(["limited", "limited", "same mailbox", "same service"]);
    for (const key of ["same mailbox", "same service"])
      expect(sinceLimitMs(key)).toBeGreaterThanOrEqual(LEAST_MS);
  });

  test("I6 no contagion: a transfer's delay does not limit its service", async () => {
    const { queue, ran } = await startLimited(create, { kind: "again", afterMs: HOUR_MS, limitMs: 500 });
    await queue.add(job("limited"));
    await expect.poll(() => ran).toEqual(["limited"]);
    await queue.add(job("b"));
    await queue.idle();
    expect(ran).toEqual(["limited"]);
    await expect.poll(() => ran, { timeout: 10_000 }).toEqual(["limited", "b"]);
  });

  test("polls each mailbox at once and then at its interval, until it is no longer scheduled", async () => {
    const { queue, count } = await recordPolls(create(1));
    await queue.schedule([
      { mailbox: "often", everyMs: 10 },
      { mailbox: "once", everyMs: 3_600_000 },
    ]);
    await expect.poll(() => count("often")).toBeGreaterThan(4);
    expect(count("once")).toBe(1);
    await queue.schedule([{ mailbox: "other", everyMs: 10 }]);
    const before = count("often");
    await expect.poll(() => count("other")).toBeGreaterThan(5);
    expect(count("often") - before).toBeLessThanOrEqual(1);
  });

  test("I6 no contagion: limits the number of running polls, however many mailboxes there are", async () => {
    const waiting: (() => void)[] = [];
    const polled = new Set<string>();
    let [now, most] = [0, 0];
    const queue = await begin(create(1), {
      async poll(mailbox) {
        most = Math.max(most, ++now);
        await new Promise<void>((resolve) => waiting.push(resolve));
        now--;
        polled.add(mailbox);
        return NO_WAIT;
      },
    });
    const names = Array.from({ length: 3 * POLLS_AT_ONCE }, (_, at) => `m${at}`);
    await queue.schedule(names.map((mailbox) => ({ mailbox, everyMs: 3_600_000 })));
    await expect
      .poll(() => {
        for (const release of waiting.splice(0)) release();
        return polled.size;
      })
      .toBe(names.length);
    expect(most).toBeLessThanOrEqual(POLLS_AT_ONCE);
  });

  test("I6 no contagion: a slow service with many mailboxes does not delay polls of another service", async () => {
    const slow = Array.from({ length: 2 * POLLS_AT_ONCE }, (_, at) => `slow${at}`);
    const services = { ...Object.fromEntries(slow.map((name) => [name, "slow"])), f1: "fine", f2: "fine" };
    const all = [...slow, "f1", "f2"];
    const scheduled = await startPolls(create, services);
    const hourly = (mailboxes: string[]) => mailboxes.map((mailbox) => ({ mailbox, everyMs: HOUR_MS }));
    await scheduled.queue.schedule(hourly(slow));
    await expect.poll(() => scheduled.polls).toHaveLength(POLLS_AT_ONCE);
    await scheduled.queue.schedule(hourly(all));
    const others = () => scheduled.polls.slice(POLLS_AT_ONCE);
    await expect.poll(others, { timeout: 10_000 }).toEqual(["f1", "f2"]);
    const { queue, polls } = await startPolls(create, services);
    void queue.pollNow(all);
    await expect.poll(() => polls).toHaveLength(POLLS_AT_ONCE + 2);
    expect(polls.filter((name) => name.startsWith("f"))).toEqual(["f1", "f2"]);
  });

  test("a pause that a service asked for applies to all its mailboxes, except to `pollNow`, and ends", async () => {
    const services = { a: "s", b: "s", other: "o" };
    let isLimiting = true;
    const { queue, count } = await recordPolls(create(1, services), (mailbox) =>
      mailbox === "a" && isLimiting ? { waitMs: 20, limitMs: 6_000 } : NO_WAIT,
    );
    await queue.schedule(Object.keys(services).map((mailbox) => ({ mailbox, everyMs: 20 })));
    const sinceMs = performance.now();
    await queue.pollNow(["a"]);
    // A poll of `b` may have started before the limit.
    await queue.pollNow(["b"]);
    const [a, b] = [count("a"), count("b")];
    await queue.pollNow(["b"]);
    const others = count("other");
    await expect.poll(() => count("other") - others).toBeGreaterThan(5);
    // A slow machine may have passed the limit already.
    if (performance.now() - sinceMs < 5_000) expect([count("a") - a, count("b") - b]).toEqual([0, 1]);
    isLimiting = false;
    await expect.poll(() => count("a") > 3 && count("b") > 3).toBe(true);
  });

  test("polls a mailbox no sooner than its last poll asked for, but at once after `schedule` or `pollNow`", async () => {
    let waitMs = 3_600_000;
    const { queue, count } = await recordPolls(create(1, { failing: "s", fine: "s" }), (mailbox) => ({
      waitMs: mailbox === "failing" ? waitMs : 0,
    }));
    const schedule = ["failing", "fine"].map((mailbox) => ({ mailbox, everyMs: 20 }));
    await queue.schedule(schedule);
    await expect.poll(() => count("fine")).toBeGreaterThan(5);
    expect(count("failing")).toBe(1);
    await queue.schedule(schedule);
    await expect.poll(() => count("failing")).toBe(2);
    await queue.pollNow(["failing"]);
    expect(count("failing")).toBe(3);
    const fine = count("fine");
    await expect.poll(() => count("fine")).toBeGreaterThan(fine + 5);
    expect(count("failing")).toBe(3);
    waitMs = 0;
    await queue.pollNow(["failing"]);
    await expect.poll(() => count("failing")).toBeGreaterThan(7);
  });

  test("a mailbox never has two polls at once, and `pollNow` awaits one that starts after it", async () => {
    let [running, most, polls] = [0, 0, 0];
    const queue = await begin(create(1), {
      async poll() {
        polls++;
        most = Math.max(most, ++running);
        await setTimeout(50);
        running--;
        return NO_WAIT;
      },
    });
    const first = queue.pollNow(["m"]);
    await expect.poll(() => polls).toBe(1);
    await Promise.all([queue.pollNow(["m"]), queue.pollNow(["m"]), queue.pollNow(["m"])]);
    await first;
    expect(polls).toBeGreaterThan(1);
    expect(most).toBe(1);
  });

  test("lets running jobs end when it closes, and aborts them after the grace period", async () => {
    const ended: string[] = [];
    const begun: string[] = [];
    const queue = await begin(create(2), {
      async download({ trackingId: key }, signal) {
        begun.push(key);
        await new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => resolve(), { once: true });
          if (key === "quick") void setTimeout(100).then(resolve);
        });
        ended.push(signal.aborted ? `${key} aborted` : key);
        return DONE;
      },
    });
    await queue.add(job("quick"));
    await queue.add(job("stuck"));
    await expect.poll(() => begun).toHaveLength(2);
    await queue.close(500);
    expect(ended).toEqual(["quick", "stuck aborted"]);
    await queue.add(job("too late"));
    expect(ended).toHaveLength(2);
  });
}

/** The contract of engines that share their jobs. */
function testFleet(openFleet: () => Promise<Join>): void {
  test("a process that runs once does not wait for jobs of other processes", async () => {
    const join = await openFleet();
    const daemon = await start(() => join({ slots: () => 1 }), 1);
    for (const key of ["running", "queued"]) await daemon.queue.add(job(key));
    await expect.poll(() => daemon.ran).toEqual(["running"]);
    const { queue } = await startLimited(() => join({ role: "worker" }), DONE);
    await queue.pollNow(["m"]);
    expect(await idleWithin(queue, 5_000)).toBe(true);
  });

  test("a process that runs once does not wait for jobs that others add, although it runs some of them", async () => {
    const join = await openFleet();
    const scheduler = await begin(join({ role: "scheduler" }), {});
    for (let at = 0; at < 50; at++) await scheduler.add(job(`other${at}`, "m", 10));
    const ran: string[] = [];
    const once = await begin(join({ role: "worker", slots: () => 1 }), {
      async download({ trackingId }) {
        ran.push(trackingId);
        await setTimeout(200);
        return DONE;
      },
    });
    await once.add(job("own"));
    await once.idle();
    expect(ran).toContain("own");
    expect(ran.length).toBeLessThan(25);
  });

  test("a process that runs once waits for its own job while another process runs it", async () => {
    const join = await openFleet();
    const daemon = await start(() => join({ slots: () => 1 }), 1);
    await daemon.queue.add(job("a"));
    await expect.poll(() => daemon.ran).toEqual(["a"]);
    const { queue, ran } = await startLimited(() => join({ role: "worker" }), DONE);
    await queue.add(job("a"));
    expect(await idleWithin(queue, 500)).toBe(false);
    daemon.release();
    expect(await idleWithin(queue, 5_000)).toBe(true);
    expect(ran).toEqual([]);
  });

  test("each mailbox has one poll per interval, and no further one when a process joins or restarts", async () => {
    const join = await openFleet();
    const one = await startPolling(join, ["a", "b"]);
    await expect.poll(() => one.polls.toSorted()).toEqual(["a", "b"]);
    const other = await startPolling(join, ["b", "c"]);
    await expect.poll(() => other.polls).toEqual(["c"]);
    await one.queue.close(0);
    const again = await startPolling(join, ["a", "b", "d"]);
    await expect.poll(() => again.polls).toEqual(["d"]);
    expect([...one.polls, ...other.polls].toSorted()).toEqual(["a", "b", "c"]);
  });

  test("the wait of a mailbox after a failed poll applies to all, until a process starts or reloads", async () => {
    const join = await openFleet();
    const failing = () => ({ waitMs: HOUR_MS });
    const one = await startPolling(join, ["a"], { everyMs: 20, next: failing });
    // Its wait is stored when this returns.
    await one.queue.pollNow(["a"]);
    const polls = one.polls.length;
    const other = await startPolling(join, ["a", "b"], {
      everyMs: 20,
      next: (it) => (it === "a" ? failing() : NO_WAIT),
    });
    await expect.poll(() => other.count("b")).toBeGreaterThan(10);
    expect(one.polls).toHaveLength(polls);
    expect(other.count("a")).toBe(1);
  });

  test("a process is told when another one polls a mailbox with success, and not before", async () => {
    const join = await openFleet();
    let [polls, served, isWell] = [0, 0, false];
    const poll = async (): Promise<PollWait> => {
      polls++;
      return isWell ? NO_WAIT : { waitMs: 50 };
    };
    for (let joined = 0; joined < 2; joined++) {
      const queue = await begin(join(), { poll, served: () => void served++ });
      await queue.schedule([{ mailbox: "a", everyMs: 50 }]);
    }
    await expect.poll(() => polls).toBeGreaterThan(3);
    expect(served).toBe(0);
    isWell = true;
    await expect.poll(() => served).toBeGreaterThan(0);
  });

  test("a limit that a service asked for lasts while processes start and end, until one reloads", async () => {
    const join = await openFleet();
    const one = await startPolling(join, ["m"], { next: () => ({ waitMs: 0, limitMs: HOUR_MS }) });
    await one.queue.pollNow(["m"]);
    const next = await startPolling(join, ["n", "other"], { everyMs: 20 });
    await one.queue.close(0);
    await expect.poll(() => next.count("other")).toBeGreaterThan(10);
    expect(next.count("n")).toBe(0);
    const once = await recordPolls(joinFleet(join));
    expect(await once.queue.pollOnce(["m", "n", "other"])).toEqual(["m", "n"]);
    expect(once.polls).toEqual(["other"]);
    await next.queue.schedule(["n", "other"].map((mailbox) => ({ mailbox, everyMs: 20 })));
    await expect.poll(() => next.count("n")).toBeGreaterThan(0);
  });

  test("a limit that a service asked for applies to its mailboxes in all, and not to another service", async () => {
    const join = await openFleet();
    const { count } = await startPolling(join, ["n", "other"], { everyMs: 20 });
    await expect.poll(() => count("n")).toBeGreaterThan(3);
    const one = await startPolling(join, ["m"], { next: () => ({ waitMs: 0, limitMs: HOUR_MS }) });
    await expect.poll(() => one.polls).toEqual(["m"]);
    const before = [count("n"), count("other")] as const;
    await expect.poll(() => count("other") - before[1]).toBeGreaterThan(10);
    expect(count("n") - before[0]).toBeLessThanOrEqual(1);
  });

  test("a limit of a service applies to every process", async () => {
    const join = await openFleet();
    const one = await startLimited(() => joinFleet(join), { ...LIMIT, afterMs: HOUR_MS });
    await one.queue.add(job("limited"));
    await expect.poll(() => one.ran).toEqual(["limited"]);
    const other = await startLimited(() => joinFleet(join), DONE);
    await other.queue.add(job("b"));
    await other.queue.add(job("another service", "other"));
    await expect
      .poll(() => [...one.ran, ...other.ran].toSorted(), { timeout: 10_000 })
      .toEqual(["another service", "b", "limited"]);
    const began = one.beganMs.get("limited") ?? 0;
    const ran = one.beganMs.get("b") ?? other.beganMs.get("b") ?? 0;
    expect(ran - began).toBeGreaterThanOrEqual(LEAST_MS);
  });
}

test.each<Next>([DONE, { kind: "again", afterMs: HOUR_MS }])(
  "`runNow` of a job that another process runs makes it run once more, and leaves no note in Redis (%o)",
  { tags: ["system"] },
  async (next) => {
    const redis = await startRedis();
    const worker = await start(() => openTestQueue(redis, { role: "worker" }), 1, undefined, next);
    const { queue } = await start(() => openTestQueue(redis, { role: "scheduler" }), 1);
    await queue.add(job("a"));
    await expect.poll(() => worker.ran).toEqual(["a"]);
    await queue.runNow(job("a"));
    const [note = "", ...more] = await redis.client.keys("*:rerun:*");
    expect(more).toEqual([]);
    expect(await redis.client.pttl(note)).toBeGreaterThan(0);
    worker.release();
    await expect.poll(() => worker.ran, { timeout: 10_000 }).toEqual(["a", "a"]);
    expect(await redis.client.keys("*:rerun:*")).toEqual([]);
    worker.release();
    await setTimeout(400);
    expect(worker.ran).toEqual(["a", "a"]);
  },
);

test("a delay that began before the clock was set back ends when the job is added again", {
  tags: ["system"],
}, async () => {
  const redis = await startRedis();
  const nexts: Next[] = [{ kind: "again", afterMs: HOUR_MS }, DONE];
  let runs = 0;
  const queue = await begin(openTestQueue(redis), { download: async () => nexts[runs++] ?? DONE });
  await queue.add(job("a"));
  await expect.poll(() => redis.client.keys("*:delayed")).toHaveLength(1);
  await queue.add(job("a"));
  const nowMs = Date.now.bind(Date);
  const clock = vi.spyOn(Date, "now").mockImplementation(() => nowMs() - 5 * HOUR_MS);
  onTestFinished(() => clock.mockRestore());
  expect(runs).toBe(1);
  await queue.add(job("a"));
  await expect.poll(() => runs, { timeout: 10_000 }).toBe(2);
});

test("a process that knows fewer services leaves the jobs of the others alone", {
  tags: ["system"],
}, async () => {
  const redis = await startRedis();
  const put = { kind: "again", afterMs: HOUR_MS } as const;
  const one = await startLimited(() => joinFleet((options) => openTestQueue(redis, options)), put);
  await one.queue.add(job("limited", "other"));
  await expect.poll(() => one.ran).toEqual(["limited"]);
  await one.queue.idle();
  const fewer = await startLimited(() => openTestQueue(redis), DONE);
  await fewer.queue.add(job("a"));
  await expect.poll(() => fewer.ran).toEqual(["a"]);
  // Longer than a start takes.
  await setTimeout(500);
  expect(await redis.client.exists(`inlet:${downloadQueueOf("other")}:limited`)).toBe(1);
});

test.each([
  ["is in no list, because Redis refused a script half-way", "hash"],
  ["has another type", "string"],
])("a job runs although its key %s", { tags: ["system"] }, async (_name, type) => {
  const redis = await startRedis();
  const { queue, ran } = await startLimited(() => openTestQueue(redis), DONE);
  const key = `inlet:${downloadQueueOf("service")}:a`;
  if (type === "string") await redis.client.set(key, "x");
  else await redis.client.hset(key, { data: '{"mailbox":"m","trackingId":"a"}', timestamp: 1 });
  await queue.add(job("a"));
  await expect.poll(() => ran).toEqual(["a"]);
});

test("a start resumes a queue that was left paused", { tags: ["system"] }, async () => {
  const redis = await startRedis();
  await redis.client.hset(`inlet:${downloadQueueOf("service")}:meta`, "paused", 1);
  const { queue, ran } = await startLimited(() => openTestQueue(redis), DONE);
  await queue.add(job("a"));
  await expect.poll(() => ran, { timeout: 10_000 }).toEqual(["a"]);
});

test.each([
  ["lost", (redis: TestRedis) => redis.client.flushall()],
  [
    "without an end",
    async ({ client }: TestRedis) => {
      for (const key of await client.keys("inlet:poll:*")) await client.set(key, "x");
    },
  ],
  [
    "of another type",
    async ({ client }: TestRedis) => {
      for (const key of await client.keys("inlet:poll:*"))
        await client.multi().del(key).lpush(key, "x").exec();
    },
  ],
])("a mailbox is polled although its key is %s", { tags: ["system"] }, async (_name, spoil) => {
  const redis = await startRedis();
  const { polls } = await startPolling((options) => openTestQueue(redis, options), ["a"], { everyMs: 500 });
  await expect.poll(() => polls).toHaveLength(1);
  await spoil(redis);
  await expect.poll(() => polls.length, { timeout: 5_000 }).toBeGreaterThan(3);
});

function job(key: string, mailbox = "m", expiresInHours = 0): TransferJob {
  const expiresMs = NOW_MS + expiresInHours * HOUR_MS;
  return { key, mailbox, trackingId: key, expiresMs };
}

function constant(services: Readonly<Record<string, string>> = { m: "service" }): Services {
  const map = new Map(Object.entries(services));
  return () => map;
}

/** Starts an engine until the end of the test. By default, polls find nothing and downloads are done. */
async function begin(opening: Promise<JobQueue>, handlers: Partial<Handlers>): Promise<JobQueue> {
  const queue = await opening;
  onTestFinished(() => queue.close(0));
  await queue.start({ poll: async () => NO_WAIT, served: () => {}, download: async () => DONE, ...handlers });
  return queue;
}

/** An engine whose polls of the service `slow` never end. */
function startPolls(create: Create, services: Readonly<Record<string, string>>) {
  return recordPolls(create(1, services), async (mailbox, signal) => {
    const isSlow = services[mailbox] === "slow" && !signal.aborted;
    if (isSlow) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    return NO_WAIT;
  });
}

/** An engine that records its polls. `next`: the result of each. */
async function recordPolls(
  opening: Promise<JobQueue>,
  next: (...args: Parameters<Handlers["poll"]>) => PollWait | Promise<PollWait> = () => NO_WAIT,
) {
  const polls: string[] = [];
  const queue = await begin(opening, {
    async poll(...args) {
      polls.push(args[0]);
      return next(...args);
    },
  });
  return { queue, polls, count: (name: string) => polls.filter((it) => it === name).length };
}

/** An engine of a fleet that polls these mailboxes, every hour unless told otherwise. */
async function startPolling(
  join: Join,
  mailboxes: readonly string[],
  { everyMs = HOUR_MS, next }: { everyMs?: number; next?: (mailbox: string) => PollWait } = {},
) {
  const recorded = await recordPolls(joinFleet(join), next);
  await recorded.queue.schedule(mailboxes.map((mailbox) => ({ mailbox, everyMs })));
  return recorded;
}

const LIMITED_SERVICES = { m: "s", n: "s", other: "other" };
const LIMIT = { kind: "again", afterMs: 500, limitMs: 500 } as const;
/** Timers may be a little early, and a busy machine is late. */
const LEAST_MS = LIMIT.limitMs - 20;

function idleWithin(queue: JobQueue, ms: number): Promise<boolean> {
  return Promise.race([queue.idle().then(() => true), setTimeout(ms, false)]);
}

/** By default, services do not matter. */
function defaults() {
  return {
    slots: () => 4,
    role: "all",
    waitForRedis: false,
    lockMs: 2_000,
    services: constant(),
    mayFreeSlots: () => false,
    outage: new Outage({ now: () => 0 }, { began() {}, ended() {} }),
    onEvicting: () => {},
    signal: new AbortController().signal,
  } as const;
}

/** The BullMQ engine on the test's Redis. */
async function openTestQueue({ url }: TestRedis, options: Partial<BullOptions> = {}): Promise<JobQueue> {
  return openBullQueue({ redis: redisSettings(url), ...defaults(), ...options });
}

function joinFleet(join: Join): Promise<JobQueue> {
  return join({ services: constant(LIMITED_SERVICES) });
}

/** An engine whose job `limited` ends its first run with `first`; all other runs are done. */
async function startLimited(create: Create, first: Next) {
  const ran: string[] = [];
  /** When each job ran first. */
  const beganMs = new Map<string, number>();
  const queue = await begin(create(1, LIMITED_SERVICES), {
    async download({ trackingId: key }) {
      const isFirst = key === "limited" && !ran.includes(key);
      ran.push(key);
      if (!beganMs.has(key)) beganMs.set(key, performance.now());
      return isFirst ? first : DONE;
    },
  });
  const sinceLimitMs = (key: string) => (beganMs.get(key) ?? 0) - (beganMs.get("limited") ?? 0);
  return { queue, ran, beganMs, sinceLimitMs };
}

/** An engine whose jobs run until they are released, one by one. */
async function start(
  create: Create,
  slots: number | (() => number),
  services?: Readonly<Record<string, string>>,
  next: Next = DONE,
) {
  const ran: string[] = [];
  const waiting: (() => void)[] = [];
  let running = 0;
  const queue = await begin(create(slots, services), {
    async download({ trackingId: key }, signal) {
      running++;
      ran.push(key);
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      running--;
      return next;
    },
  });
  return { queue, ran, running: () => running, release: () => waiting.shift()?.() };
}
