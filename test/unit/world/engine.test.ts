/** What the engine of worlds may do to jobs, as the engine on Redis may. In virtual time. */
import { expect, test } from "vitest";
import { Outage } from "../../../src/base/outage.ts";
import { pause } from "../../../src/base/timers.ts";
import { DONE, type Next, NO_WAIT, type TransferJob } from "../../../src/model/job.ts";
import type { JobQueue } from "../../../src/queue/port.ts";
import { openModelQueue } from "../../world/engine/engine.ts";
import { SharedStore } from "../../world/engine/store.ts";
import { SimulatedDisk } from "../../world/ground/disk.ts";
import { type Ground, Process, START_MS } from "../../world/ground/process.ts";
import { Random } from "../../world/ground/random.ts";
import { Schedule } from "../../world/ground/schedule.ts";

const LOCK_MS = 30_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const SERVICES = new Map([["m", "service"]]);
const JOB: TransferJob = { key: "a", mailbox: "m", trackingId: "a", expiresMs: START_MS };

test("a lost job is gone until it is added again", async () => {
  const { store, start, let: pass } = play();
  const one = await start();
  store.mischief.lose = 1;
  await one.call((queue) => queue.add(JOB));
  await pass(HOUR_MS);
  expect(one.runs).toEqual([]);
  store.mischief.lose = 0;
  await one.call((queue) => queue.add(JOB));
  await pass(MINUTE_MS);
  expect(one.runs).toHaveLength(1);
});

test("a job that is delayed may get lost too", async () => {
  const { store, start, let: pass } = play();
  const one = await start({ runMs: 1_000, next: { kind: "again", afterMs: MINUTE_MS } });
  await one.call((queue) => queue.add(JOB));
  store.mischief.lose = 1;
  await pass(HOUR_MS);
  expect(one.runs).toHaveLength(1);
  expect(store.stateOf("service", "a")).toBe("unknown");
});

test("a repeated job runs twice, and the first run aborts when it renews its lock", async () => {
  const { store, start, let: pass } = play();
  // The first has only one slot, so it cannot take the job again itself.
  const daemons = [await start({ runMs: HOUR_MS }), await start({ runMs: HOUR_MS })];
  store.mischief.repeat = 1;
  await daemons[0]?.call((queue) => queue.add(JOB));
  await pass(100);
  store.mischief.repeat = 0;
  await pass(LOCK_MS);
  const runs = daemons.flatMap((daemon) => daemon.runs).toSorted((a, b) => a.beganMs - b.beganMs);
  expect(runs).toHaveLength(2);
  const [first, second] = runs;
  expect(second?.beganMs).toBeLessThan(first?.abortedMs ?? 0);
  expect((first?.abortedMs ?? 0) - (first?.beganMs ?? 0)).toBeLessThan(LOCK_MS / 2 + 100);
  await pass(2 * HOUR_MS);
  expect(second?.abortedMs).toBeUndefined();
  expect(daemons.flatMap((daemon) => daemon.runs)).toHaveLength(2);
  expect(store.stateOf("service", "a")).toBe("unknown");
});

test("a due job may be handed out late", async () => {
  const { store, start, let: pass } = play();
  const one = await start();
  store.mischief.delay = 1;
  await one.call((queue) => queue.add(JOB));
  await pass(1_000);
  expect(one.runs).toEqual([]);
  expect(await one.call((queue) => queue.stalled())).toEqual(["service"]);
  await pass(10 * MINUTE_MS);
  expect(one.runs).toHaveLength(1);
});

test("another process runs the job of a process that was killed, when its lock has ended", async () => {
  const { start, let: pass, schedule } = play();
  const one = await start({ runMs: HOUR_MS });
  await one.call((queue) => queue.add(JOB));
  await pass(5 * MINUTE_MS);
  expect(one.runs).toHaveLength(1);
  const other = await start();
  await pass(5 * MINUTE_MS);
  expect(other.runs).toEqual([]);
  one.process.kill();
  const killedMs = schedule.nowMs;
  await pass(2 * LOCK_MS + 1_000);
  expect(other.runs).toHaveLength(1);
  expect((other.runs[0]?.beganMs ?? 0) - killedMs).toBeGreaterThan(LOCK_MS / 2);
});

test("a process that pauses for longer than its lock loses its job", async () => {
  const { start, let: pass, schedule } = play();
  const one = await start({ runMs: HOUR_MS });
  await one.call((queue) => queue.add(JOB));
  await pass(1_000);
  const other = await start({ runMs: HOUR_MS });
  one.process.frozenUntilMs = schedule.nowMs + 5 * MINUTE_MS;
  await pass(10 * MINUTE_MS);
  expect([one.runs, other.runs]).toMatchObject([[{ abortedMs: expect.any(Number) }], [{}]]);
  expect(other.runs[0]?.abortedMs).toBeUndefined();
});

test.each<Next>([DONE, { kind: "again", afterMs: 10 * HOUR_MS }])(
  "`runNow` makes a job that another process runs run once more (%o)",
  async (next) => {
    const { start, let: pass } = play();
    const worker = await start({ role: "worker", runMs: 10_000, next });
    const scheduler = await start({ role: "scheduler" });
    await scheduler.call((queue) => queue.add(JOB));
    await pass(5_000);
    await scheduler.call((queue) => queue.runNow(JOB));
    await pass(HOUR_MS);
    expect(worker.runs).toHaveLength(2);
    expect(scheduler.runs).toEqual([]);
  },
);

test("a store that is away is reported, nothing fails, and the work goes on when it is back", async () => {
  const { store, start, let: pass } = play();
  const one = await start({ runMs: 10_000 });
  await one.call((queue) => queue.schedule([{ mailbox: "m", everyMs: MINUTE_MS }]));
  await one.call((queue) => queue.add(JOB));
  await pass(1_000);
  store.isAway = true;
  await pass(1_000);
  expect(one.outages).toEqual(["QUEUE_UNREACHABLE"]);
  const polls = one.polls();
  const adding = one.begin((queue) => queue.add({ ...JOB, key: "b", trackingId: "b" }));
  await pass(20 * MINUTE_MS);
  expect(one.polls()).toBe(polls);
  expect(one.runs).toMatchObject([{ key: "a", abortedMs: undefined }]);
  expect(await one.call((queue) => queue.depth())).toBeUndefined();
  store.isAway = false;
  await pass(2 * MINUTE_MS);
  await adding;
  // The lock of the first has ended meanwhile, and nobody has recorded its end.
  expect(one.runs.map(({ key }) => key).toSorted()).toEqual(["a", "a", "b"]);
  expect(one.polls()).toBeGreaterThan(polls);
  expect(one.outages).toEqual(["QUEUE_UNREACHABLE", "over"]);
});

test("a store that has lost everything knows no job, and aborts its run", async () => {
  const { store, start, let: pass } = play();
  const one = await start({ runMs: HOUR_MS });
  await one.call((queue) => queue.add(JOB));
  await pass(1_000);
  store.wipe();
  await pass(LOCK_MS);
  expect(one.runs).toMatchObject([{ abortedMs: expect.any(Number) }]);
  await one.call((queue) => queue.add(JOB));
  await pass(1_000);
  expect(one.runs).toHaveLength(2);
});

test("a process that stops gives its job back at once", async () => {
  const { start, let: pass } = play();
  const one = await start({ runMs: HOUR_MS });
  await one.call((queue) => queue.add(JOB));
  await pass(1_000);
  const other = await start();
  await one.call((queue) => queue.close(1_000));
  await pass(1_000);
  expect([one.runs, other.runs]).toMatchObject([[{ abortedMs: expect.any(Number) }], [{}]]);
});

test("costs nothing while nothing is due", async () => {
  const { start, let: pass, schedule } = play();
  const next: Next = { kind: "again", afterMs: 24 * HOUR_MS };
  const [one, other] = [await start({ next }), await start({ next })];
  await one.call((queue) => queue.add(JOB));
  await pass(MINUTE_MS);
  const before = schedule.steps;
  await pass(20 * HOUR_MS);
  expect([...one.runs, ...other.runs]).toHaveLength(1);
  expect(schedule.steps - before).toBeLessThan(5);
});

interface Run {
  readonly key: string;
  readonly beganMs: number;
  abortedMs: number | undefined;
}

interface Behaviour {
  readonly role?: "all" | "worker" | "scheduler";
  /** How long a download takes. It ends sooner when it is aborted. */
  readonly runMs?: number;
  readonly next?: Next;
}

/** A store and processes in virtual time, which passes only by `let` and `call`. */
function play() {
  const schedule = new Schedule(START_MS);
  const random = new Random(7);
  const disk = new SimulatedDisk(() => schedule.nowMs);
  const unused = () => Promise.reject(new Error("not here"));
  const ground: Ground = {
    ...{ schedule, disk, random, areLocksBroken: false, locks: new Map(), watches: new Set() },
    ...{ disturb: () => 0, runProgram: unused, post: unused },
  };
  const store = new SharedStore({ nowMs: () => schedule.nowMs, random: random.fork() });

  /** Lets time pass until the work is done. */
  const finish = async <Result>(work: Promise<Result>): Promise<Result> => {
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    work.then(end, end);
    await schedule.run(schedule.nowMs + HOUR_MS, () => isOver);
    expect(isOver).toBe(true);
    return work;
  };

  const start = async ({ role = "all", runMs = 0, next = DONE }: Behaviour = {}) => {
    const process = new Process("daemon", ground);
    const runs: Run[] = [];
    const outages: string[] = [];
    let polls = 0;
    const events = {
      began: ({ code }: { code: string }) => outages.push(code),
      ended: () => outages.push("over"),
    };
    const queue = process.run(() =>
      openModelQueue(store, {
        ...{ role, lockMs: LOCK_MS, random: process.random, slots: () => 1, services: () => SERVICES },
        ...{ mayFreeSlots: () => false, outage: new Outage(process, events) },
        signal: new AbortController().signal,
      }),
    );
    const begin = <Result>(work: (queue: JobQueue) => Promise<Result>) => process.run(() => work(queue));
    const call = <Result>(work: (queue: JobQueue) => Promise<Result>) => finish(begin(work));
    const starting = begin(() =>
      queue.start({
        async poll() {
          polls++;
          return NO_WAIT;
        },
        served() {},
        async download({ trackingId }, signal) {
          const run: Run = { key: trackingId, beganMs: schedule.nowMs, abortedMs: undefined };
          runs.push(run);
          await pause(runMs, signal).catch(() => {
            run.abortedMs = schedule.nowMs;
          });
          return next;
        },
      }),
    );
    await finish(starting);
    return { process, runs, outages, polls: () => polls, begin, call };
  };

  return { store, schedule, start, let: (ms: number) => schedule.run(schedule.nowMs + ms) };
}
