/** Daemons in their own processes that suspend themselves with SIGSTOP at one of their steps. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import type { CrashTask } from "./crash-daemon.ts";
import { compilePreload } from "./preload.ts";
import { childProgram, makeFolder, startCommand } from "./program.ts";

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
export type StartPausing<Point = number> = (task: CrashTask, point: Point) => Promise<PausingDaemon>;

/** Suspends after a durable step, counted from the discovery of a transfer. */
export const pausingAfterSteps: StartPausing = async (task, point) => {
  const steps = join(await makeFolder(), "steps");
  return start({ ...task, pauseAt: point, steps }, {}, steps);
};

/**
 * Suspends before a call that changes the inbox or the work folder, so that it continues with outdated knowledge. `from`: a
 * part of the path of the first call that counts.
 */
export async function pausingBeforeCalls(from: string): Promise<StartPausing<number | `/${string}`>> {
  const preload = await compilePreload("pause");
  return async (task, point) => {
    const PAUSE_LOG = join(await makeFolder(), "steps");
    const PAUSE_BELOW = join(task.folder, "inbox");
    const env = { ...preload, PAUSE_BELOW, PAUSE_FROM: from, PAUSE_LOG, PAUSE_AT: String(point) };
    return start(task, env, PAUSE_LOG);
  };
}

function start(task: object, env: Record<string, string>, steps: string): PausingDaemon {
  const child = startCommand(process.execPath, [childProgram("pause-child"), JSON.stringify(task)], { env });
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
    steps: () => (existsSync(steps) ? readFileSync(steps, "utf8").split("\n").filter(Boolean) : []),
  };
}

function stateOf({ pid, exitCode, signalCode }: ChildProcess): "running" | "stopped" | "ended" {
  if (exitCode !== null || signalCode !== null) return "ended";
  // `PID (PROGRAM) STATE …`
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T") ? "stopped" : "running";
}
