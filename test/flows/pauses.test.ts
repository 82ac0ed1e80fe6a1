// @module-tag system
/**
 * I2 once: a daemon is suspended with SIGSTOP at each step of a delivery, like on a machine that hangs. Another daemon on
 * the same Redis takes over, then the first one continues.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import { readTree, withoutTimes } from "../support/daemon.ts";
import { type CrashTask, runCrashDaemon } from "../support/daemon-task.ts";
import { countBy, pausingBeforeCalls, type StartPausing, walkPoints } from "../support/disturbed.ts";
import { observeInbox } from "../support/inbox-observer.ts";
import { readRecords } from "../support/ledger.ts";
import { makeFolder, startChild } from "../support/program.ts";
import { startRedis, type TestRedis } from "../support/redis.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";
import { oneIn } from "../support/thorough.ts";

/** Each has its own Redis, and mostly waits for the lock of a suspended daemon. */
const AT_ONCE = 4;
const LOCK_MS = 500;
/** They take about a second in tests. */
const POLLS = 10;
/** Runs differ by a few steps, because notes and journals are written by the clock. */
const SPARE_STEPS = 4;
const DISCOVERY = "/notes/";
const FIRST_ATTEMPT = "/attempts/";
const DECISION = "/.end-1.json";
const EMPTY_AT_LAST = ["staging", "notes", "new", "outbox/new", "orders", "quarantine"];
const ENDS = ["delivered", "quarantined", "gone"];

describe("I2 once: a daemon is suspended at any step of a delivery, and continues after another one is done", () => {
  test("the command after the delivery runs once", async () => {
    const start = pausingBeforeCalls(DISCOVERY);
    const { outcome, steps } = await runUndisturbed(start);
    expect(outcome).toMatchObject({ runs: ["begin", "end"], outbox: [".wait"] });
    await walk({ outcome, steps, every: oneIn(4) }, (scene, point) => {
      return runPaused(scene, start, point, () => runCrashDaemon(scene.task));
    });
  });

  test("if the other one is suspended too, the first one delivers its complete content", async () => {
    const start = pausingBeforeCalls(FIRST_ATTEMPT);
    const { outcome, steps } = await runUndisturbed(start);
    const last = steps.findIndex((step) => step.endsWith(DECISION.slice(1))) + 1;
    await walk({ outcome, steps, every: oneIn(4), last }, async (scene, point) => {
      const first = await start(scene.task, DECISION);
      expect(await first.isStopped()).toBe(true);
      const resumeFirst = async () => {
        first.goOn();
        await first.end();
      };
      return runPaused(scene, start, point, resumeFirst);
    });
  });
});

describe("the command after a delivery never runs twice at the same time", () => {
  test("if its daemon is suspended while it runs", async () => {
    const { task, simulator, note, hold } = await prepare(await startRedis(), { isHeld: true });
    const daemon = startDaemon(task);
    await expect.poll(() => linesOf(note)).toEqual(["begin"]);
    daemon.kill("SIGSTOP");
    const other = startDaemon(task);
    await waitForPolls(simulator);
    expect(linesOf(note)).toEqual(["begin"]);
    rmSync(hold);
    await expect.poll(() => linesOf(note)).toEqual(["begin", "end"]);
    daemon.kill("SIGCONT");
    for (const each of [daemon, other]) await end(each);
    await runCrashDaemon(task);
    expect(linesOf(note)).toEqual(["begin", "end"]);
  });

  test("if its daemon is killed while it runs, and another one is running", async () => {
    const { task, simulator, note, hold, work } = await prepare(await startRedis(), { isHeld: true });
    const daemon = startDaemon(task);
    await expect.poll(() => linesOf(note)).toEqual(["begin"]);
    const other = startDaemon(task);
    await expect.poll(() => countMembers(work)).toBe(2);
    await kill(daemon);
    await waitForPolls(simulator);
    expect(linesOf(note)).toEqual(["begin"]);
    rmSync(hold);
    await expect.poll(() => linesOf(note)).toEqual(["begin", "end", "begin", "end"]);
    await end(other);
  });

  test("if its daemon is killed while it runs, and started again at once", async () => {
    const { task, simulator, note, hold } = await prepare(undefined, { isHeld: true });
    const daemon = startDaemon(task);
    await expect.poll(() => linesOf(note)).toEqual(["begin"]);
    await kill(daemon);
    const next = startDaemon(task);
    await waitForPolls(simulator);
    expect(linesOf(note)).toEqual(["begin"]);
    rmSync(hold);
    await expect.poll(() => linesOf(note)).toEqual(["begin", "end", "begin", "end"]);
    await end(next);
  });
});

interface PausedRun {
  /** Where the daemon was suspended, in words. */
  readonly point: string;
  readonly isStopped: boolean;
  /** The transfer's state on the disk when that daemon continued. */
  readonly whenGoingOn: string;
  readonly outcome: Outcome;
}

interface Outcome {
  readonly end: string;
  /** All ends of the transfer in the journal. */
  readonly journal: readonly string[];
  /** All delivered files, by path. */
  readonly tree: Record<string, string>;
  readonly problems: readonly string[];
  /** Folders that appeared after the last daemon continued. */
  readonly late: readonly string[];
  /** Lines that the command wrote. */
  readonly runs: readonly string[];
  /** Extensions of the outbox entries. */
  readonly outbox: readonly string[];
  /** Files in folders that must be empty at the end. */
  readonly leftOver: readonly string[];
}

interface Walk {
  /** Of an undisturbed run. */
  readonly outcome: Outcome;
  readonly steps: readonly string[];
  readonly every: number;
  readonly last?: number | undefined;
}

/** One run for each point, several at a time. */
async function walk(
  { outcome: expected, steps, every, last }: Walk,
  runTo: (scene: Scene, point: number) => Promise<PausedRun>,
): Promise<void> {
  const free = await Promise.all(Array.from({ length: AT_ONCE }, () => startRedis()));
  const reached = await walkPoints(
    async (point) => {
      const redis = free.pop() ?? (await startRedis());
      const scene = await prepare(redis, { hasCommand: true });
      const { point: where, isStopped, outcome, whenGoingOn } = await runTo(scene, point);
      free.push(redis);
      if (!isStopped) return false;
      expect({ outcome, whenGoingOn }, where).toEqual({ outcome: expected, whenGoingOn: "delivered" });
      return true;
    },
    { points: countBy(every, every, last), atOnce: AT_ONCE },
  );
  expect(reached * every).toBeGreaterThan((last ?? steps.length) - SPARE_STEPS - every);
}

async function runUndisturbed(start: StartPausing) {
  const scene = await prepare(await startRedis(), { hasCommand: true });
  const daemon = await start(scene.task, 0);
  await daemon.end();
  return { outcome: await scene.finish(listDeliveries(scene)), steps: daemon.steps() };
}

/** Suspends a daemon at a point, lets another one work, then continues the first one. */
async function runPaused(
  scene: Scene,
  start: StartPausing,
  point: number,
  other: () => Promise<unknown>,
): Promise<PausedRun> {
  const daemon = await start(scene.task, point);
  const isStopped = await daemon.isStopped();
  await other();
  const [whenGoingOn, delivered] = [stateIn(scene.work), listDeliveries(scene)];
  daemon.goOn();
  await daemon.end();
  const where = `stopped at ${point}, ${daemon.steps()[point - 1]}`;
  return { point: where, isStopped, whenGoingOn, outcome: await scene.finish(delivered) };
}

interface SceneOptions {
  readonly hasCommand?: boolean;
  /** The command runs until the file `hold` is removed. */
  readonly isHeld?: boolean;
}

type Scene = Awaited<ReturnType<typeof prepare>>;

async function prepare(redis: TestRedis | undefined, { hasCommand = false, isHeld = false }: SceneOptions) {
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
  const folder = await makeFolder();
  const [inbox, note, hold] = [join(folder, "inbox"), join(folder, "runs"), join(folder, "hold")];
  const work = join(inbox, ".inlet");
  if (isHeld) writeFileSync(hold, "");
  const script = 'echo begin >> "$0"; while sleep 0.1; [ -e "$1" ]; do :; done; echo end >> "$0"';
  const task: CrashTask = {
    url: simulator.url,
    clientId: simulator.clientId,
    folder,
    fetch: "files",
    redis: redis?.url,
    ...(hasCommand || isHeld ? { handoff: { command: ["sh", "-c", script, note, hold] } } : {}),
  };
  const observer = observeInbox(inbox, 10);
  /** Runs one more daemon. `delivered`: the inbox when the last one continued. */
  const finish = async (delivered: readonly string[]): Promise<Outcome> => {
    const late = listDeliveries({ inbox }).filter((name) => !delivered.includes(name));
    await runCrashDaemon(task);
    observer.close();
    await redis?.client.flushall();
    const entries = listNames(join(work, "outbox")).filter((name) => name.includes("."));
    const left = EMPTY_AT_LAST.map((place) => listNames(join(work, place)).map((name) => join(place, name)));
    return {
      end: stateIn(work),
      journal: readJournal(work),
      tree: withoutTimes(await readTree(inbox)),
      problems: observer.problems,
      late,
      runs: linesOf(note),
      outbox: entries.map((name) => extname(name)),
      leftOver: left.flat(),
    };
  };
  return { task, simulator, inbox, work, note, hold, finish };
}

/** A daemon that runs until it is stopped. */
function startDaemon(task: CrashTask): ChildProcess {
  const daemon = startChild({
    ...task,
    lockMs: LOCK_MS,
    mailbox: { layout: "{mailbox}/{trackingId}" },
  });
  daemon.stdout?.resume();
  daemon.stderr?.resume();
  return daemon;
}

/** Waits long enough for running daemons to find a due hand-off and start it. */
async function waitForPolls(simulator: Simulator): Promise<void> {
  const before = simulator.totals().received;
  await expect.poll(() => simulator.totals().received).toBeGreaterThan(before + POLLS);
}

async function end(daemon: ChildProcess): Promise<void> {
  const gone = once(daemon, "exit");
  daemon.kill("SIGTERM");
  expect(await gone).toEqual([0, null]);
}

async function kill(daemon: ChildProcess): Promise<void> {
  const gone = once(daemon, "exit");
  daemon.kill("SIGKILL");
  await gone;
}

function countMembers(work: string): number {
  return listNames(join(work, "members")).filter((name) => name.endsWith(".json")).length;
}

function listDeliveries({ inbox }: Pick<Scene, "inbox">): string[] {
  return listNames(join(inbox, MAILBOX));
}

/** The state of the only transfer by its records and its note, with its reason to wait; empty before its discovery. */
function stateIn(work: string): string {
  try {
    return readRecords(work)
      .map(({ state, message }) => (state === "waiting" ? `waiting: ${message}` : state))
      .join();
  } catch {
    // A note gets its text shortly after its name.
    return "";
  }
}

/** Without repeated ends, which the journal may have. */
function readJournal(work: string): string[] {
  const folder = join(work, "journal");
  const lines = listNames(folder).flatMap((name) => linesOf(join(folder, name)));
  const ends = lines.map((line) => JSON.parse(line)).filter(({ state }) => ENDS.includes(state));
  return [
    ...new Set(ends.map(({ state, folder }) => (state === "delivered" ? `${state} ${folder}` : state))),
  ];
}

function linesOf(path: string): string[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8").split("\n").filter(Boolean);
}

function listNames(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return [];
  }
}
