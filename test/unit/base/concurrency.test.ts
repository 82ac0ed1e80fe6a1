/** The concurrency kit: what callers may rely on. */
import { setTimeout as pause, setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  Coalesced,
  forEachLimit,
  KeyedMutex,
  KeyedPool,
  Mutex,
  mapLimit,
  WaitGroup,
} from "../../../src/base/concurrency.ts";

const FOREVER = new AbortController().signal;

test("forEachLimit runs every item once, and never more at once than the limit", async () => {
  const cases = fc.asyncProperty(
    fc.array(fc.nat(3), { maxLength: 30 }),
    fc.integer({ min: 1, max: 5 }),
    fc.boolean(),
    async (waits, limit, isAsync) => {
      const done: number[] = [];
      let [running, most] = [0, 0];
      const items = isAsync ? asyncOf(waits.entries()) : waits.entries();
      await forEachLimit(items, limit, async ([at, turns]) => {
        running++;
        most = Math.max(most, running);
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        running--;
        done.push(at);
      });
      expect(done.toSorted((a, b) => a - b)).toEqual(waits.map((_, at) => at));
      expect(most).toBe(Math.min(most, limit));
      if (waits.length >= limit && waits.every((turns) => turns > 1) && !isAsync) expect(most).toBe(limit);
    },
  );
  await fc.assert(cases, { numRuns: 100 });
});

test("forEachLimit starts nothing after a failure, aborts what runs, and throws once that has ended", async () => {
  const started: string[] = [];
  let hasEnded = false;
  const work = async (item: string, signal: AbortSignal) => {
    started.push(item);
    if (item === "bad") throw new Error("no room left");
    await pause(60_000, undefined, { signal }).catch(() => pause(5));
    hasEnded = true;
  };
  const all = forEachLimit(["slow", "bad", "never"], 2, work);
  await expect(all).rejects.toThrow("no room left");
  expect([started, hasEnded]).toEqual([["slow", "bad"], true]);
});

test("forEachLimit throws the first of several failures", async () => {
  const [a, b] = [Promise.withResolvers<never>(), Promise.withResolvers<never>()];
  const all = forEachLimit([a, b], 2, ({ promise }) => promise);
  // Both have begun then.
  await setImmediate();
  b.reject(new Error("first"));
  a.reject(new Error("second"));
  await expect(all).rejects.toThrow("first");
});

test("forEachLimit passes the caller's signal on", async () => {
  const stop = new AbortController();
  const all = forEachLimit([1, 2], 2, (_item, signal) => pause(60_000, undefined, { signal }), stop.signal);
  stop.abort(new Error("stopped"));
  await expect(all).rejects.toThrow("aborted");
});

test("forEachLimit closes its source after a failure, and throws the failure of the source", async () => {
  let isClosed = false;
  async function* endless() {
    try {
      for (let at = 0; ; at++) yield at;
    } finally {
      isClosed = true;
    }
  }
  const work = async (at: number) => {
    if (at === 3) throw new Error("bad item");
  };
  await expect(forEachLimit(endless(), 2, work)).rejects.toThrow("bad item");
  expect(isClosed).toBe(true);
  // biome-ignore lint/correctness/useYield: it fails before the first item
  async function* broken(): AsyncGenerator<number> {
    throw new Error("cannot list");
  }
  await expect(forEachLimit(broken(), 2, work)).rejects.toThrow("cannot list");
});

test("mapLimit returns results in the order of the items", async () => {
  const work = (afterMs: number) => pause(afterMs, afterMs * 2);
  expect(await mapLimit([9, 1, 5], 3, work)).toEqual([18, 2, 10]);
  expect(await mapLimit([], 3, work)).toEqual([]);
});

test("Mutex runs work in order, one at a time, whatever fails", async () => {
  const mutex = new Mutex();
  const steps: string[] = [];
  const runs = ["a", "b", "c"].map((name) =>
    mutex.run(async () => {
      steps.push(`${name} starts`);
      await pause(1);
      steps.push(`${name} ends`);
      if (name === "a") throw new Error("a failed");
      return name;
    }),
  );
  const results = await Promise.allSettled(runs);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  expect(steps).toEqual(["a starts", "a ends", "b starts", "b ends", "c starts", "c ends"]);
  expect(mutex.isInUse).toBe(false);
});

test("Mutex gives no lock to a caller whose signal has aborted, lets a waiter give up, and passes the lock on to the next one", async () => {
  const mutex = new Mutex();
  expect(await mutex.lock(AbortSignal.abort())).toBeUndefined();
  const release = await mutex.lock();
  const impatient = mutex.lock(AbortSignal.timeout(1));
  const patient = mutex.lock(AbortSignal.timeout(60_000));
  expect(await impatient).toBeUndefined();
  release?.();
  const next = await patient;
  expect(next).toBeTypeOf("function");
  expect(mutex.isInUse).toBe(true);
  next?.();
  await mutex.idle();
  expect(mutex.isInUse).toBe(false);
});

test("KeyedMutex makes callers of the same key wait, and of no other", async () => {
  const mutex = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const steps: string[] = [];
  const first = mutex.run("a", async () => {
    await gate.promise;
    steps.push("a1");
    throw new Error("a1 failed");
  });
  const second = mutex.run("a", async () => void steps.push("a2"));
  await mutex.run("b", async () => void steps.push("b1"));
  gate.resolve();
  await expect(first).rejects.toThrow("a1 failed");
  await second;
  expect(steps).toEqual(["b1", "a1", "a2"]);
});

test("Coalesced runs once for all callers that wait, and again for those that come during the run", async () => {
  const gates: PromiseWithResolvers<number>[] = [];
  const work = new Coalesced(() => {
    const gate = Promise.withResolvers<number>();
    gates.push(gate);
    return gate.promise;
  });
  const first = [work.run(), work.run()];
  await expect.poll(() => gates.length).toBe(1);
  const next = [work.run(), work.run()];
  gates[0]?.resolve(1);
  expect(await Promise.all(first)).toEqual([1, 1]);
  await expect.poll(() => gates.length).toBe(2);
  expect(work.isIdle).toBe(false);
  gates[1]?.resolve(2);
  expect(await Promise.all(next)).toEqual([2, 2]);
  expect([work.isIdle, gates.length]).toEqual([true, 2]);
});

test("Coalesced rejects for the callers of a failed run only", async () => {
  let runs = 0;
  const work = new Coalesced(async () => {
    runs++;
    await pause(1);
    if (runs === 1) throw new Error("disk full");
  });
  const first = work.run();
  await expect.poll(() => runs).toBe(1);
  const next = work.run();
  await expect(first).rejects.toThrow("disk full");
  await next;
  await work.idle();
});

test("Coalesced runs scheduled work once, a little later, unless it was run at once meanwhile", async () => {
  let runs = 0;
  const work = new Coalesced(async () => void runs++, 5);
  work.schedule();
  work.schedule();
  expect(runs).toBe(0);
  await expect.poll(() => runs).toBe(1);
  work.schedule();
  await work.run();
  await pause(20);
  await work.idle();
  expect(runs).toBe(2);
});

test("WaitGroup waits for work under way, failed or not", async () => {
  const group = new WaitGroup();
  const gate = Promise.withResolvers<string>();
  const slow = group.add(gate.promise);
  const failed = group.add(Promise.reject(new Error("failed")));
  await expect(failed).rejects.toThrow("failed");
  expect(group.size).toBe(1);
  const waiting = group.wait().then(() => "over");
  expect(await Promise.race([waiting, pause(1, "waits")])).toBe("waits");
  gate.resolve("done");
  expect([await waiting, await slow, group.size]).toEqual(["over", "done", 0]);
});

describe("KeyedPool", () => {
  test("runs a few keys at once, each once, drops those beyond the limit, and resolves when all are done", async () => {
    const { pool, running, most, runs } = poolOf({ running: 2, waiting: 2 });
    // What runs is not queued again.
    for (const key of ["a", "b", "a", "c", "c", "d", "e"]) pool.add(key);
    expect(running()).toEqual(["a", "b"]);
    await pool.idle();
    expect([runs, most()]).toEqual([["a", "b", "c", "d"], 2]);
  });

  test("runs a key later, or at once where it is added meanwhile", async () => {
    const { pool, runs } = poolOf({ running: 1, waiting: 10 });
    pool.addLater("later", 1);
    pool.addLater("sooner", 60_000);
    pool.add("sooner");
    await expect.poll(() => runs).toEqual(["sooner", "later"]);
  });

  test("does not count a timer that has fired, though its key runs or is dropped", async () => {
    const gate = Promise.withResolvers<void>();
    const runs: string[] = [];
    const work = async (key: string) => {
      runs.push(key);
      if (runs.length === 1) await gate.promise;
    };
    const pool = new KeyedPool({ running: 1, waiting: 1 }, work, FOREVER);
    pool.add("a");
    for (const key of ["a", "b", "c"]) {
      pool.addLater(key, 0);
      await pause(10);
    }
    gate.resolve();
    await pool.idle();
    pool.addLater("d", 0);
    await expect.poll(() => runs).toEqual(["a", "b", "d"]);
  });

  test.each([
    ["waits for running work when it is closed, and starts nothing more", FOREVER, ["a"]],
    ["starts nothing after the stop", AbortSignal.abort(), []],
  ])("%s", async (_, stop, expected) => {
    const { pool, runs, running } = poolOf({ running: 1, waiting: 10 }, stop);
    pool.add("a");
    pool.add("b");
    pool.addLater("c", 1);
    await pool.close();
    await pause(10);
    expect([runs, running()]).toEqual([expected, []]);
  });
});

function poolOf(limits: { readonly running: number; readonly waiting: number }, stop = FOREVER) {
  const runs: string[] = [];
  const running = new Set<string>();
  let most = 0;
  const work = async (key: string) => {
    runs.push(key);
    running.add(key);
    most = Math.max(most, running.size);
    await pause(2);
    running.delete(key);
  };
  const pool = new KeyedPool(limits, work, stop);
  return { pool, runs, running: () => [...running], most: () => most };
}

async function* asyncOf<Item>(items: Iterable<Item>): AsyncGenerator<Item> {
  yield* items;
}
