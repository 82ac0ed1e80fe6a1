/** I7 nothing silent: what fails to happen is reported, whatever the cause, and nothing else is. */
import { expect, test } from "vitest";
import { type Machine, onMachine, systemMachine } from "../../../src/base/machine.ts";
import type { DaemonEvent } from "../../../src/model/events.ts";
import { type Promised, WITHIN_MS } from "../../../src/model/promise.ts";
import { downloadOf, Pulse } from "../../../src/observe/pulse.ts";
import { type PromiseSource, Watcher } from "../../../src/observe/watcher.ts";
import { Clocks } from "../../support/clocks.ts";
import { makeRecord } from "../../support/record.ts";

const START_MS = Date.parse("2026-03-01T08:00:00Z");
const CHECK_MS = 10_000;

function promise(dueMs: number, facts: Partial<Promised> = {}): Promised {
  return { kind: "poll", subject: "mailbox m", text: "Not polled.", dueMs, graceMs: 30_000, ...facts };
}

/** A watcher in virtual time. */
function watch(...sources: PromiseSource[]) {
  const time = { wallMs: START_MS, monotonicMs: START_MS, uptimeMs: 5_000 };
  const machine: Machine = {
    ...systemMachine,
    monotonicMs: () => time.monotonicMs,
    uptimeMs: () => time.uptimeMs,
  };
  const events: Extract<DaemonEvent, { type: "promises-changed" }>[] = [];
  const emit = (event: DaemonEvent) => {
    if (event.type === "promises-changed") events.push(event);
  };
  const watcher = onMachine(machine, () => new Watcher({ now: () => time.wallMs }, emit, sources));
  return {
    events,
    shown: () =>
      events
        .at(-1)
        ?.broken.filter((it) => !it.isExplained)
        .map(({ subject }) => subject) ?? [],
    /** Checks as often as the timer does. `standsStill`: once, at the end. */
    async pass(ms: number, { standsStill = false, clock = ms, sleepMs = 0 } = {}) {
      time.uptimeMs += sleepMs;
      for (let done = 0; done < ms; done += standsStill ? ms : CHECK_MS) {
        const step = standsStill ? ms : Math.min(CHECK_MS, ms - done);
        time.wallMs += step * (clock / ms);
        time.monotonicMs += step;
        time.uptimeMs += step;
        onMachine(machine, () => watcher.check());
        await new Promise(setImmediate);
      }
    },
  };
}

test("a promise that is kept is not mentioned; a broken one is reported once, and so is its end", async () => {
  let dueMs = START_MS + 60_000;
  const { pass, events } = watch({ kind: "poll", read: () => [promise(dueMs)] });
  await pass(60_000);
  expect(events).toEqual([]);
  await pass(60_000);
  expect(events).toMatchObject([{ began: [{ subject: "mailbox m", dueMs }], kept: [] }]);
  dueMs += 10 * 60_000;
  await pass(60_000);
  expect(events.slice(1)).toMatchObject([{ broken: [], began: [], kept: [{ subject: "mailbox m" }] }]);
});

test("a promise of a part that does not answer, or fails, is broken after a minute", async () => {
  for (const read of [() => new Promise<never>(() => {}), () => Promise.reject(new Error("away"))]) {
    const { pass, shown } = watch({ kind: "download", read });
    await pass(WITHIN_MS);
    expect(shown()).toEqual([]);
    await pass(2 * CHECK_MS);
    expect(shown()).toEqual(["downloads"]);
  }
});

test("a promise is not reported while a trouble explains it, nor for its grace after that", async () => {
  let isExplained = true;
  const source = { kind: "poll", isExplained: () => isExplained, read: () => [promise(START_MS)] } as const;
  const { pass, shown, events } = watch(source);
  await pass(5 * 60_000);
  expect(shown()).toEqual([]);
  // Metrics count it.
  expect(events.at(-1)?.broken).toMatchObject([{ isExplained: true }]);
  isExplained = false;
  await pass(30_000);
  expect(shown()).toEqual([]);
  await pass(20_000);
  expect(shown()).toEqual(["mailbox m"]);
});

test("a process that stood still says so, and leaves its work time to catch up", async () => {
  let dueMs = START_MS + 60_000;
  const { pass, events, shown } = watch({ kind: "poll", read: () => [promise(dueMs)] });
  await pass(20_000);
  await pass(10 * 60_000, { standsStill: true });
  expect(shown()).toEqual(["process"]);
  expect(events.at(-1)?.began[0]?.text).toContain("stood still for 600 seconds");
  await pass(CHECK_MS);
  expect(shown()).toEqual([]);
  dueMs = START_MS + 60 * 60_000;
  await pass(60_000);
  expect(events.flatMap(({ began }) => began.map(({ subject }) => subject))).toEqual(["process"]);
});

test.each([3_600_000, -3_600_000])("a clock that is set by %i ms breaks no promise", async (clock) => {
  const { pass, events } = watch({ kind: "poll", read: () => [promise(START_MS + 60_000)] });
  await pass(CHECK_MS, { clock });
  await pass(CHECK_MS);
  expect(events).toEqual([]);
});

test("a machine that slept says so, and breaks no other promise", async () => {
  const { pass, shown } = watch({ kind: "poll", read: () => [promise(START_MS + 60_000)] });
  await pass(CHECK_MS, { sleepMs: 3_600_000 });
  expect(shown()).toEqual(["process"]);
  await pass(CHECK_MS);
  expect(shown()).toEqual([]);
});

test("a broken promise names the time on the wall clock, whenever that was set", async () => {
  const { pass, events } = watch({ kind: "poll", read: () => [promise(START_MS + 60_000)] });
  await pass(CHECK_MS, { clock: CHECK_MS + 3_600_000 });
  await pass(60_000);
  expect(events.at(-1)?.began).toMatchObject([{ sinceMs: START_MS + 60_000 + 3_600_000 }]);
});

const MINUTE_MS = 60_000;

test("names work without progress for half an hour, and nothing else", async () => {
  const clocks = new Clocks(START_MS);
  await clocks.run(async () => {
    const pulse = new Pulse();
    const { promise, resolve } = Promise.withResolvers<void>();
    const lively = pulse.during(downloadOf(makeRecord({ trackingId: "lively" })), () => promise);
    const silent = pulse.during(downloadOf(makeRecord({ trackingId: "silent" })), () => promise);
    for (let minute = 0; minute <= 30; minute++) {
      pulse.listener({ type: "transfer-changed", record: makeRecord({ trackingId: "lively" }) });
      pulse.listener({ type: "transfer-changed", record: makeRecord({ trackingId: "other" }) });
      expect(pulse.stuck()).toBe(undefined);
      clocks.pass(MINUTE_MS);
    }
    expect(pulse.stuck()).toBe(downloadOf(makeRecord({ trackingId: "silent" })));
    pulse.listener({ type: "transfer-changed", record: makeRecord({ trackingId: "silent" }) });
    expect(pulse.stuck()).toBe(undefined);
    resolve();
    await Promise.all([lively, silent]);
    clocks.pass(60 * MINUTE_MS);
    expect(pulse.stuck()).toBe(undefined);
  });
});

test("leaves a running check to its own time limit, and forgets work that failed", async () => {
  const clocks = new Clocks(START_MS);
  await clocks.run(async () => {
    const pulse = new Pulse();
    await expect(pulse.during("it", () => Promise.reject(new Error("fails")))).rejects.toThrow("fails");
    const { promise, resolve } = Promise.withResolvers<void>();
    const record = makeRecord({ state: "checking" });
    const work = pulse.during(downloadOf(record), () => promise);
    pulse.listener({ type: "transfer-changed", record });
    clocks.pass(600 * MINUTE_MS);
    expect(pulse.stuck()).toBe(undefined);
    pulse.listener({ type: "transfer-changed", record: makeRecord({ state: "delivering" }) });
    clocks.pass(31 * MINUTE_MS);
    expect(pulse.stuck()).toBe(downloadOf(record));
    resolve();
    await work;
  });
});
