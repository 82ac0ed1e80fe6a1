/** Daemons in their own processes that are killed, suspended or cut off from their disk at one of their steps. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import { type CrashTask, runCrashDaemon } from "./daemon-task.ts";
import { type Finished, finish, makeFolder, startChild } from "./program.ts";
import { transferPlan } from "./service.ts";

/** Daemons that run at the same time. */
export const AT_ONCE = 2;

/** A transfer with a message and small files, and one with a file of many blocks. */
export const PLANS = [
  transferPlan({ trackingId: "t1", message: "Hello", expiresInSeconds: 1000 }),
  transferPlan({ trackingId: "t2", files: [{ name: "large.bin", generate: { bytes: 300_000 } }] }),
];

export interface DisturbedTask extends CrashTask {
  readonly user?: number;
  /** The durable step at which it kills itself, by number or name. */
  readonly crashAt?: number | string;
  /** Before that it prints a `CrashReport` and runs this command, which cuts the disk off. */
  readonly unplug?: readonly string[];
  /** It suspends itself. */
  readonly pause?: Pause;
}

export interface Pause {
  /** The number of the step, or `/` and a part of its path; 0 for none. */
  readonly at: number | string;
  /** Gets a line for each step. */
  readonly log: string;
  /** Steps are calls that are about to change names below this folder. */
  readonly below: string;
  /** A part of the path of the first call that counts. */
  readonly from: string;
}

/** A daemon's report just before a power cut. */
export interface CrashReport {
  /** The durable step that was just done. */
  readonly step: string;
  /** The last reported state of each transfer: it must hold after the power cut. */
  readonly reported: Readonly<Record<string, string>>;
  /** The disk as it sees it. */
  readonly names: readonly string[];
}

/** In this process if possible, which saves a start. */
export async function runToItsEnd(task: DisturbedTask): Promise<void> {
  if (task.user === undefined) return void (await runCrashDaemon(task));
  const { exitCode, stderr } = await runChild(task);
  expect([exitCode, stderr]).toEqual([0, ""]);
}

/** Its exit code is null if it was killed at its step. */
export function runChild(task: DisturbedTask): Promise<Finished> {
  return finish(startChild({ once: task }));
}

/**
 * Runs a daemon for each point, several at a time, until one ends before its point. The number of points differs a little
 * from run to run, because notes and journals are written by the clock. Returns how many points were reached.
 *
 * @param runTo resolves to whether the run reached its point.
 */
export async function walkPoints(
  runTo: (point: number) => Promise<boolean>,
  which: { points?: Iterable<number>; atOnce?: number } = {},
): Promise<number> {
  const { points = countBy(1), atOnce = AT_ONCE } = which;
  const next = points[Symbol.iterator]();
  let [reached, isOver] = [0, false];
  const work = async () => {
    while (!isOver) {
      const { value, done } = next.next();
      if (done) return;
      if (await runTo(value)) reached++;
      else isOver = true;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return reached;
}

/** `every`, twice `every`, and so on. */
export function* countBy(every: number, from = every, last = Number.POSITIVE_INFINITY): Generator<number> {
  for (let point = from; point <= last; point += every) yield point;
}

interface PausingDaemon {
  /** Resolves when it is suspended, or to false when it has ended. */
  isStopped(): Promise<boolean>;
  goOn(): void;
  /** Waits for its end, and demands success. */
  end(): Promise<void>;
  /** So far. */
  steps(): string[];
}

/** `point`: the number of the step at which it suspends itself, or `/` and a part of its path; 0 for none. */
export type StartPausing = (task: CrashTask, point: number | `/${string}`) => Promise<PausingDaemon>;

/**
 * Suspends before a call that changes the inbox or the work folder, so that it continues with outdated knowledge. `from`: a
 * part of the path of the first call that counts.
 */
export function pausingBeforeCalls(from: string): StartPausing {
  return (task, at) => startPausing(task, { at, from, below: join(task.folder, "inbox") });
}

async function startPausing(task: CrashTask, where: Omit<Pause, "log">): Promise<PausingDaemon> {
  const log = join(await makeFolder(), "steps");
  const child = startChild({ once: { ...task, pause: { ...where, log } } satisfies DisturbedTask });
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("no pipes");
  const outcome = Promise.all([text(stdout), text(stderr), once(child, "exit")]);
  return {
    async isStopped() {
      await expect.poll(() => stateOf(child)).not.toBe("running");
      return stateOf(child) === "stopped";
    },
    goOn: () => void child.kill("SIGCONT"),
    async end() {
      expect(await outcome).toEqual(["", "", [0, null]]);
    },
    steps: () => (existsSync(log) ? readFileSync(log, "utf8").split("\n").filter(Boolean) : []),
  };
}

function stateOf({ pid, exitCode, signalCode }: ChildProcess): "running" | "stopped" | "ended" {
  if (exitCode !== null || signalCode !== null) return "ended";
  // `PID (PROGRAM) STATE …`
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T") ? "stopped" : "running";
}
