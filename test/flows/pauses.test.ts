/**
 * I2 once: a daemon is stopped with SIGSTOP at each step of a delivery, as one on a machine that hangs. Another daemon on
 * the same Redis takes over, and then the first one goes on.
 *
 * It is stopped after its durable steps, and before its calls that change what is on the disk: then it goes on with what
 * it has found out before.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { giveOrder } from "../../src/ledger/orders.ts";
import type { Simulator } from "../../src/simulator/simulator.ts";
import { openConsumersEye } from "../support/consumers-eye.ts";
import { type CrashTask, runCrashDaemon } from "../support/crash-daemon.ts";
import { readTree, withoutTimes } from "../support/daemon.ts";
import { readRecords } from "../support/ledger.ts";
import { compilePreload } from "../support/preload.ts";
import { makeFolder, startCommand } from "../support/program.ts";
import { startRedis, type TestRedis } from "../support/redis.ts";
import { ROOT } from "../support/root.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

/** Each has a Redis of its own, and mostly waits for the lock of a daemon that is stopped. */
const AT_ONCE = 4;
const LOCK_MS = 500;
/** A second, at the pace of daemons in tests. */
const POLLS = 10;
/** Lives differ a little, as notes and journals are written by the clock: nearly all points must be reached. */
const LEAST_SHARE = 0.9;
const WORK = "inbox/.inlet";
const EMPTY_AT_LAST = ["staging", "notes", "new", "outbox/new", "orders", "quarantine"];
const ENDS = ["delivered", "quarantined", "gone"];

describe("I2 once: a daemon is stopped at any step of a delivery, and goes on when another one is done", () => {
  test("the transfer is delivered once", async () => {
    const bench = await openBench("after", {});
    expect(Object.keys(bench.undisturbed.tree)).toHaveLength(5);
    await walk(bench, ({ point, outcome, whenGoingOn }) => {
      expect(outcome, point).toEqual(bench.undisturbed);
      expect(whenGoingOn, point).toBe("delivered");
    });
  }, 300_000);

  test("the command that follows the delivery runs once", async () => {
    const bench = await openBench("before", { hasCommand: true });
    expect(bench.undisturbed).toMatchObject({ runs: ["begin", "end"], outbox: [".wait"] });
    await walk(bench, ({ point, outcome, whenGoingOn }) => {
      expect(outcome, point).toEqual(bench.undisturbed);
      expect(whenGoingOn, point).toBe("delivered");
    });
  }, 300_000);

  test.each([
    {
      ended: "its sender has revoked it",
      when: "before",
      meanwhile: async (simulator: Simulator) => simulator.revoke("t1"),
      comesTooLate: (state: string) => state === "delivered",
    },
    {
      ended: "an operator has discarded it",
      when: "after",
      meanwhile: (_: Simulator, work: string) => giveDiscard(work),
      comesTooLate: (state: string) => state === "delivering" || state === "delivered",
    },
  ] as const)(
    "nothing is delivered where $ended meanwhile, unless that came too late",
    async (ending) => {
      const { when, meanwhile, comesTooLate } = ending;
      const bench = await openBench(when, { hasCommand: true, meanwhile });
      const gone = { ...bench.undisturbed, end: "gone", journal: ["gone"], tree: {}, runs: [], outbox: [] };
      const seen = new Set<string>();
      const check = async ({ whenStopped, whenGoingOn, outcome }: Life) => {
        const expected = comesTooLate(whenStopped) ? bench.undisturbed : gone;
        expect(outcome).toEqual(expected);
        expect(whenGoingOn).toBe(expected.end);
        seen.add(expected.end);
      };
      await walk({ ...bench, points: bench.points.filter((point) => point % 2 === 0) }, check);
      expect(seen).toEqual(new Set(["gone", "delivered"]));
    },
    300_000,
  );
});

describe("the command that follows a delivery never runs twice at the same time", () => {
  test("where its daemon is stopped while it runs", async () => {
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

  test("where its daemon is killed while it runs, and another one is there", async () => {
    const { task, simulator, note, hold } = await prepare(await startRedis(), { isHeld: true });
    const daemon = startDaemon(task);
    await expect.poll(() => linesOf(note)).toEqual(["begin"]);
    const other = startDaemon(task);
    await expect.poll(() => countMembers(task)).toBe(2);
    await kill(daemon);
    await waitForPolls(simulator);
    expect(linesOf(note)).toEqual(["begin"]);
    rmSync(hold);
    await expect.poll(() => linesOf(note)).toEqual(["begin", "end", "begin", "end"]);
    await end(other);
  });

  test("where its daemon is killed while it runs, and started again at once", async () => {
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

interface Wishes {
  readonly hasCommand?: boolean;
  /** The command runs until the file `hold` is gone. */
  readonly isHeld?: boolean;
  /** Happens while the daemon is stopped, before the other one starts. */
  readonly meanwhile?: (simulator: Simulator, work: string) => Promise<unknown>;
}

interface Bench {
  readonly wishes: Wishes;
  readonly stopper: Stopper;
  /** The numbers of the steps of an undisturbed life. */
  readonly points: readonly number[];
  readonly undisturbed: Outcome;
}

async function openBench(when: "before" | "after", wishes: Wishes): Promise<Bench> {
  const stopper = when === "before" ? await stopBeforeCalls() : stopAfterSteps;
  const { meanwhile: _, ...usual } = wishes;
  const life = await live(await startRedis(), usual, stopper, 0);
  return { wishes, stopper, points: life.steps.map((_, at) => at + 1), undisturbed: life.outcome };
}

/** Lives once for each point, several at a time, and checks each life in which the daemon was stopped. */
async function walk({ wishes, stopper, points }: Bench, check: (life: Life) => void): Promise<void> {
  expect(points.length).toBeGreaterThan(8);
  const waiting = [...points];
  let reached = 0;
  const work = async () => {
    const redis = await startRedis();
    for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
      const life = await live(redis, wishes, stopper, point);
      if (!life.isStopped) continue;
      check(life);
      reached++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  expect(reached).toBeGreaterThanOrEqual(points.length * LEAST_SHARE);
}

interface Life {
  /** Where the first daemon was stopped, for people. */
  readonly point: string;
  /** Those of the first daemon, from the discovery of the transfer on. */
  readonly steps: readonly string[];
  readonly isStopped: boolean;
  /** The state of the transfer on the disk when the first daemon was stopped, and when it went on. */
  readonly whenStopped: string;
  readonly whenGoingOn: string;
  readonly outcome: Outcome;
}

interface Outcome {
  readonly end: string;
  /** Every end of the transfer that the journal has. */
  readonly journal: readonly string[];
  /** Everything that a consumer gets, by path. */
  readonly tree: Record<string, string>;
  /** Folders that appeared after the first daemon went on. */
  readonly late: readonly string[];
  readonly complaints: readonly string[];
  /** What the command has noted. */
  readonly runs: readonly string[];
  /** How the names of outbox entries end. */
  readonly outbox: readonly string[];
  /** What is in folders that are empty once everything is done. */
  readonly leftOver: readonly string[];
}

/** Stops a daemon at a step, lets another one run, lets the first one go on, and runs one more. */
async function live(redis: TestRedis, wishes: Wishes, stopper: Stopper, point: number): Promise<Life> {
  const { task, simulator, note } = await prepare(redis, wishes);
  const [inbox, work] = [join(task.folder, "inbox"), join(task.folder, WORK)];
  const deliveries = () => listNames(join(inbox, MAILBOX));
  const eye = openConsumersEye(inbox, 10);
  const first = startStopping(task, stopper, point);
  await expect.poll(() => first.state()).not.toBe("running");
  const isStopped = first.state() === "stopped";
  const whenStopped = stateIn(work);
  if (isStopped) {
    await wishes.meanwhile?.(simulator, work);
    await runCrashDaemon(task);
  }
  const [whenGoingOn, delivered] = [stateIn(work), deliveries()];
  first.goOn();
  await first.end();
  await runCrashDaemon(task);
  await eye.close();
  await redis.client.flushall();
  const entries = listNames(join(work, "outbox")).filter((name) => name.includes("."));
  const outcome = {
    end: stateIn(work),
    journal: readJournal(work),
    tree: withoutTimes(await readTree(inbox)),
    late: deliveries().filter((name) => !delivered.includes(name)),
    complaints: eye.complaints,
    runs: linesOf(note),
    outbox: entries.map((name) => extname(name)),
    leftOver: EMPTY_AT_LAST.flatMap((place) => listNames(join(work, place)).map((name) => join(place, name))),
  };
  const steps = linesOf(join(task.folder, "steps"));
  return {
    point: `stopped at step ${point}, ${steps[point - 1]}`,
    steps,
    isStopped,
    whenStopped,
    whenGoingOn,
    outcome,
  };
}

/** How a daemon is made to stop at one of its steps, and to note all of them in the file `steps`. */
type Stopper = (
  folder: string,
  point: number,
) => { readonly task: object; readonly env: Record<string, string> };

const stopAfterSteps: Stopper = (folder, point) => ({
  task: { pauseAt: point, steps: join(folder, "steps") },
  env: {},
});

async function stopBeforeCalls(): Promise<Stopper> {
  const preload = await compilePreload("pause");
  return (folder, point) => {
    const [PAUSE_BELOW, PAUSE_LOG] = [join(folder, "inbox"), join(folder, "steps")];
    return { task: {}, env: { ...preload, PAUSE_BELOW, PAUSE_LOG, PAUSE_AT: String(point) } };
  };
}

function startStopping(task: CrashTask, stopper: Stopper, point: number) {
  const stopping = stopper(task.folder, point);
  const child = startCommand(
    process.execPath,
    [join(ROOT, "test/support/pause-child.ts"), JSON.stringify({ ...task, ...stopping.task })],
    { env: stopping.env },
  );
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("no pipes");
  const outcome = Promise.all([text(stdout), text(stderr), once(child, "exit")]);
  return {
    state: () => stateOf(child),
    goOn: () => void child.kill("SIGCONT"),
    async end(): Promise<void> {
      expect(await outcome).toEqual(["", "", [0, null]]);
    },
  };
}

function stateOf({ pid, exitCode, signalCode }: ChildProcess): "running" | "stopped" | "ended" {
  if (exitCode !== null || signalCode !== null) return "ended";
  // `PID (PROGRAM) STATE …`
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T") ? "stopped" : "running";
}

async function prepare(redis: TestRedis | undefined, { hasCommand = false, isHeld = false }: Wishes) {
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
  const folder = await makeFolder();
  const [note, hold] = [join(folder, "runs"), join(folder, "hold")];
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
  return { task, simulator, note, hold };
}

/** A daemon that runs until it is ended. */
function startDaemon(task: CrashTask): ChildProcess {
  const daemon = startCommand(process.execPath, [
    join(ROOT, "test/support/daemon-child.ts"),
    JSON.stringify({ ...task, lockMs: LOCK_MS, mailbox: { layout: "{mailbox}/{trackingId}" } }),
  ]);
  daemon.stdout?.resume();
  daemon.stderr?.resume();
  return daemon;
}

/** Passes time for daemons that run to find what is to follow a delivery, and to begin it. */
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

function countMembers({ folder }: CrashTask): number {
  return listNames(join(folder, WORK, "members")).filter((name) => name.endsWith(".json")).length;
}

function giveDiscard(work: string): Promise<string> {
  return giveOrder(work, { action: "discard", mailbox: MAILBOX, trackingId: "t1", round: 1, by: "the test" });
}

/** The state of the only transfer, by its records and its note; empty where it is not known yet. */
function stateIn(work: string): string {
  try {
    return readRecords(work)
      .map(({ state }) => state)
      .join();
  } catch {
    // A note gets its text a moment after its name.
    return "";
  }
}

/** The journal may have an end twice. */
function readJournal(work: string): string[] {
  const folder = join(work, "journal");
  const lines = listNames(folder).flatMap((name) => linesOf(join(folder, name)));
  const ends = lines.map((line) => JSON.parse(line)).filter(({ state }) => ENDS.includes(state));
  return [...new Set(ends.map(({ state, folder }) => [state, folder].filter(Boolean).join(" ")))];
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
