/** Runs a daemon on a failing disk, then again on a working one, and checks both results. */
import { existsSync } from "node:fs";
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { onTestFinished } from "vitest";
import { readTree, withoutTimes } from "./daemon.ts";
import {
  type Call,
  type DiskDaemon,
  type Failure,
  type RunResult,
  readCalls,
  startDiskDaemon,
  writtenBy,
} from "./failing-disk.ts";
import type { DaemonTask } from "./failing-disk-child.ts";
import { observeInbox } from "./inbox-observer.ts";
import { openTestSimulator, transferPlan } from "./service.ts";
import { MAILBOX } from "./settings.ts";

/** In memory if possible: power cuts are not tested here. */
const DISK = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const LOOK_MS = 2;
const HOUR_MS = 60 * 60_000;
const SUCCESS = { failedPolls: 0, unsettled: 0 };

/** Plain names, because strace escapes others. */
const PLANS = [
  transferPlan({
    trackingId: "t1",
    message: "Hello",
    files: [
      { name: "a.txt", text: "Hello" },
      { name: "b.csv", text: "1;2\n3;4\n" },
    ],
    expiresInSeconds: 1000,
  }),
  transferPlan({ trackingId: "t2", files: [{ name: "large.bin", generate: { bytes: 100_000 } }] }),
];
const TARGETS = PLANS.map(({ trackingId }) => `${MAILBOX}/${trackingId}`);

/** What happened in the folder before the run. */
export type Past = "nothing" | "a start" | "a refused rename" | "an unsynced rename";

export interface Point extends Failure {
  readonly past: Past;
  /** The daemon runs until all is delivered. */
  readonly runsOn?: boolean;
}

interface PointResult {
  /** The calls that failed. */
  readonly failed: readonly string[];
  readonly problems: readonly string[];
}

export interface Bench {
  /** Each can run one point at a time. */
  readonly slots: readonly number[];
  /** The calls of a run in which nothing fails. */
  calls(past: Past): Promise<Call[]>;
  visit(slot: number, point: Point): Promise<PointResult>;
}

/** With two slots. */
export async function openBench(fetch: DaemonTask["fetch"]): Promise<Bench> {
  const simulator = await openTestSimulator({ transfers: PLANS });
  const service = { url: simulator.url, clientId: simulator.clientId, fetch };
  const daemons = await Promise.all([startDiskDaemon(), startDiskDaemon()]);
  const [daemon] = daemons;
  // Load all modules before the first trace.
  for (const each of daemons) await each.run({ ...service, folder: await makeDisk() });
  const pasts = new Map<Past, string>();
  const begin = async (past: Past) => {
    const [from, folder] = [pasts.get(past), await makeDisk()];
    if (from !== undefined) await cp(from, folder, { recursive: true });
    return { ...service, folder, aheadMs: HOUR_MS };
  };

  const undisturbed = await begin("nothing");
  const calls = readCalls((await daemon.runTraced(undisturbed)).calls, undisturbed.folder);
  const tree = withoutTimes(await readTree(join(undisturbed.folder, "inbox")));
  const written = writtenBy(calls);
  const started = await makeDisk();
  await daemon.run({ ...service, folder: started, paused: true });
  pasts.set("a start", started);
  for (const [past, { kind, nth }] of firstFailures(calls)) {
    const folder = await makeDisk();
    const failure = { kinds: [kind], error: "EIO", when: String(nth) } as const;
    await daemon.runFailing({ ...service, folder }, failure, written);
    pasts.set(past, folder);
  }

  return {
    slots: [...daemons.keys()],
    async calls(past) {
      const task = await begin(past);
      return readCalls((await daemon.runTraced(task)).calls, task.folder);
    },
    async visit(slot, point) {
      const task = await begin(point.past);
      const visit = await runPoint(daemons[slot] as DiskDaemon, task, point, written, tree);
      if (visit.died) daemons[slot] = await startDiskDaemon();
      await rm(task.folder, { recursive: true });
      return visit;
    },
  };
}

/** The call at which a first run has to fail to make each past. */
function firstFailures(calls: readonly Call[]): [Past, Call][] {
  const renames = calls.filter(({ kind }) => kind === "rename");
  const delivery = renames.find(({ text }) => /\/staging\/.*\/(inbox|proc\/self\/fd)\//.test(text));
  const sync = calls.find(
    ({ kind }, at) => kind === "fsync" && delivery !== undefined && at > calls.indexOf(delivery),
  );
  if (delivery === undefined || sync === undefined) {
    throw new Error("the undisturbed run delivered nothing");
  }
  return [
    ["a refused rename", delivery],
    ["an unsynced rename", sync],
  ];
}

async function runPoint(
  daemon: DiskDaemon,
  task: DaemonTask,
  point: Point,
  written: readonly string[],
  tree: Readonly<Record<string, string>>,
): Promise<PointResult & { died: boolean }> {
  const { folder } = task;
  const inbox = join(folder, "inbox");
  const isDelivered = async () => isDeepStrictEqual(withoutTimes(await readTree(inbox)), tree);
  const observer = observeInbox(inbox, LOOK_MS);
  const failing = await daemon.runFailing(point.runsOn ? { ...task, until: TARGETS } : task, point, written);
  const problems = problemsOf(failing);
  if (claimsSuccess(failing) && !(await isDelivered())) problems.push("it claims success without a delivery");
  const second = "died" in failing ? failing : await daemon.run({ ...task, aheadMs: 2 * HOUR_MS });
  observer.close();
  problems.push(...observer.problems);
  if (second !== failing) {
    problems.push(...problemsOf(second).map((problem) => `second run: ${problem}`));
    if (!claimsSuccess(second)) problems.push(`second run: ${JSON.stringify({ ...second, calls: [] })}`);
    if (!(await isDelivered())) problems.push(`delivered: ${Object.keys(await readTree(inbox)).join(" ")}`);
    problems.push(...(await leftOvers(folder)).map((path) => `left behind: ${path}`));
  }
  const failed = failing.calls.filter((call) => call.endsWith("(INJECTED)"));
  return {
    failed: failed.map((call) => call.replaceAll(folder, "")),
    problems: problems.map((problem) => problem.replaceAll(folder, "")),
    died: "died" in second,
  };
}

function claimsSuccess(result: RunResult): boolean {
  return "outcome" in result && isDeepStrictEqual(result.outcome, SUCCESS);
}

/** A run may end with a fault, but with no other error. */
function problemsOf(result: RunResult): string[] {
  if ("died" in result) return [`the process died: ${result.died}`];
  const { error, open } = result;
  return [
    ...(error === undefined ? [] : [`no fault: ${error}`]),
    ...open.map((path) => `not closed: ${path}`),
  ];
}

/** Partial files, and files that must not outlive an open transfer. */
async function leftOvers(folder: string): Promise<string[]> {
  const paths = await readdir(folder, { recursive: true });
  return paths.filter((path) => /\.part$|\.inlet\/(staging|quarantine|notes|new)\/./.test(path));
}

async function makeDisk(): Promise<string> {
  const folder = await mkdtemp(join(DISK, "inlet-disk-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
