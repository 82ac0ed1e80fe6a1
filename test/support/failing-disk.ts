/**
 * Runs a daemon of this process on a real disk some of whose calls fail, then again while all of them work, and checks both
 * results.
 */
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { onTestFinished } from "vitest";
import { describeFault, Fault } from "../../src/base/faults.ts";
import { onMachine, systemMachine } from "../../src/base/machine.ts";
import type { MailboxSettings } from "../../src/config/settings.ts";
import { type DaemonOutcome, runDaemon } from "../../src/daemon.ts";
import { readTree, withoutTimes } from "./daemon.ts";
import { type CrashTask, settingsOfCrash } from "./daemon-task.ts";
import { observeInbox } from "./inbox-observer.ts";
import { openTestSimulator, transferPlan } from "./service.ts";
import { MAILBOX } from "./settings.ts";
import { watchFiles } from "./watched-files.ts";

/** The kind of each call, by the names of `Files` and `OpenFile`. */
const KIND_OF = {
  write: "write",
  writeFile: "write",
  copyFile: "write",
  truncate: "write",
  sync: "fsync",
  datasync: "fsync",
  rename: "rename",
  link: "link",
  openFile: "open",
  mkdir: "mkdir",
  makeFolder: "mkdir",
  rm: "remove",
  rmdir: "remove",
  unlink: "remove",
  chmod: "chmod",
  lchown: "chmod",
  lstat: "stat",
  stat: "stat",
  statExactly: "stat",
  realpath: "stat",
  statfs: "statfs",
  readdir: "list",
  opendir: "list",
  read: "read",
  readText: "read",
  readFile: "read",
} as const;

export type Kind = (typeof KIND_OF)[keyof typeof KIND_OF];
export const KINDS: readonly Kind[] = [...new Set(Object.values(KIND_OF))];

export interface Failure {
  readonly kinds: readonly Kind[];
  readonly error: "EIO" | "ENOSPC";
  /**
   * `5` the fifth call, `3+3` every third, `7+` all from the seventh on, `2..9+2` every second up to the ninth. Each kind is
   * counted separately.
   */
  readonly when: string;
}

/** A call on a file in the daemon's folder. `nth`: among the calls of its kind. */
export interface Call {
  readonly kind: Kind;
  readonly nth: number;
  readonly text: string;
}

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

interface DiskTask extends CrashTask {
  /** How far the daemon's clock is ahead, so that all waits are over. */
  readonly aheadMs?: number;
}

interface RunResult {
  readonly outcome?: DaemonOutcome;
  /** The stack of an error that is no fault. */
  readonly error?: string;
  readonly calls: readonly Call[];
  readonly failed: readonly Call[];
  /** Files in the folder that were not closed. */
  readonly open: readonly string[];
}

/** In memory if possible: power cuts are not tested here. */
const DISK = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const LOOK_MS = 2;
const GRACE_MS = 5_000;
const HOUR_MS = 60 * 60_000;
const SUCCESS = { failedPolls: 0, unsettled: 0 };
const LITTLE_PATIENCE = { retryMs: 10, diskMs: 10, lockedMs: 10, slowMs: 60_000 };

const PLANS = [
  transferPlan({ trackingId: "t1", message: "Hello", expiresInSeconds: 1000 }),
  transferPlan({ trackingId: "t2", files: [{ name: "large.bin", generate: { bytes: 100_000 } }] }),
];
const TARGETS = PLANS.map(({ trackingId }) => `${MAILBOX}/${trackingId}`);

/** With two slots. */
export async function openBench(fetch: CrashTask["fetch"]): Promise<Bench> {
  const { url, clientId } = await openTestSimulator({ transfers: PLANS });
  const service = { url, clientId, fetch };
  const pasts = new Map<Past, string>();
  const begin = async (past: Past): Promise<DiskTask> => {
    const [from, folder] = [pasts.get(past), await makeDisk()];
    if (from !== undefined) await cp(from, folder, { recursive: true });
    return { ...service, folder, aheadMs: HOUR_MS };
  };
  const undisturbed = await begin("nothing");
  const { calls } = await runOnce(undisturbed);
  const tree = withoutTimes(await readTree(join(undisturbed.folder, "inbox")));
  const started = await makeDisk();
  await runOnce({ ...service, folder: started, paused: true });
  pasts.set("a start", started);
  for (const [past, { kind, nth }] of firstFailures(calls)) {
    const folder = await makeDisk();
    await runOnce({ ...service, folder }, { kinds: [kind], error: "EIO", when: String(nth) });
    pasts.set(past, folder);
  }
  return {
    slots: [0, 1],
    calls: async (past) => [...(await runOnce(await begin(past))).calls],
    async visit(_slot, point) {
      const task = await begin(point.past);
      const result = await visit(task, point, tree);
      await rm(task.folder, { recursive: true });
      return result;
    },
  };
}

/** The call at which a first run has to fail to make each past. */
function firstFailures(calls: readonly Call[]): [Past, Call][] {
  const at = calls.findIndex(({ text }) => /^rename "\/inbox\/(?!\.inlet).* from ".*\/staging\//.test(text));
  const [delivery, sync] = [calls[at], calls.find(({ kind }, index) => kind === "fsync" && index > at)];
  if (delivery === undefined || sync === undefined) {
    throw new Error("the undisturbed run delivered nothing");
  }
  return [
    ["a refused rename", delivery],
    ["an unsynced rename", sync],
  ];
}

async function visit(
  task: DiskTask,
  point: Point,
  tree: Readonly<Record<string, string>>,
): Promise<PointResult> {
  const { folder } = task;
  const inbox = join(folder, "inbox");
  const isDelivered = async () => isDeepStrictEqual(withoutTimes(await readTree(inbox)), tree);
  const observer = observeInbox(inbox, LOOK_MS);
  const failing = await (point.runsOn ? runUntilDelivered(task, point) : runOnce(task, point));
  const problems = problemsOf(failing);
  if (claimsSuccess(failing) && !(await isDelivered())) problems.push("it claims success without a delivery");
  const second = await runOnce({ ...task, aheadMs: 2 * HOUR_MS });
  observer.close();
  problems.push(...observer.problems, ...problemsOf(second).map((problem) => `second run: ${problem}`));
  if (!claimsSuccess(second)) problems.push(`second run: ${JSON.stringify({ ...second, calls: [] })}`);
  if (!(await isDelivered())) problems.push(`delivered: ${Object.keys(await readTree(inbox)).join(" ")}`);
  problems.push(...(await leftOvers(folder)).map((path) => `left behind: ${path}`));
  return {
    failed: failing.failed.map(({ text }) => text),
    problems: problems.map((problem) => problem.replaceAll(folder, "")),
  };
}

function claimsSuccess({ outcome }: RunResult): boolean {
  return isDeepStrictEqual(outcome, SUCCESS);
}

/** A run may end with a fault, but with no other error. */
function problemsOf({ error, open }: RunResult): string[] {
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

function runOnce(task: DiskTask, failure?: Failure): Promise<RunResult> {
  const stop = new AbortController().signal;
  const clock = { now: () => Date.now() + (task.aheadMs ?? 0) };
  const options = { mode: "once", stop, graceMs: GRACE_MS, onEvent: () => {}, clock } as const;
  return watch(task, failure, () => endOf(runDaemon(settingsOfCrash(task), options)));
}

/**
 * Restarts a daemon that ends with a fault, as systemd does. Password attempts count as spent until their result is
 * recorded, so a disk that always fails needs a large budget.
 */
function runUntilDelivered(task: DiskTask, failure: Failure): Promise<RunResult> {
  const often: Partial<MailboxSettings> = { pollMs: 20, passwordAttempts: 100 };
  const settings = settingsOfCrash(task, often);
  const stop = new AbortController();
  const options = { stop: stop.signal, graceMs: GRACE_MS, onEvent: () => {}, patience: LITTLE_PATIENCE };
  const look = setInterval(() => {
    if (TARGETS.every((path) => existsSync(join(settings.inbox, path)))) stop.abort();
  }, 10);
  return watch(task, failure, async () => {
    for (;;) {
      const end = await endOf(runDaemon(settings, { mode: "run", ...options }));
      if (!end.isFault || stop.signal.aborted) return end;
    }
  }).finally(() => clearInterval(look));
}

type End = Pick<RunResult, "outcome" | "error"> & { readonly isFault?: true; readonly why?: string };

async function endOf(run: Promise<DaemonOutcome>): Promise<End> {
  try {
    return { outcome: await run };
  } catch (error) {
    if (error instanceof Fault && error.code !== "UNEXPECTED") {
      return { isFault: true, why: describeFault(error) };
    }
    return { error: error instanceof Error ? String(error.stack) : String(error) };
  }
}

/** Runs work on a disk whose calls are noted, and some of which fail. */
async function watch(
  { folder }: DiskTask,
  failure: Failure | undefined,
  work: () => Promise<End>,
): Promise<RunResult> {
  const [calls, failed]: [Call[], Call[]] = [[], []];
  const counts = new Map<Kind, number>();
  const files = watchFiles(({ name, path, from, creates }) => {
    const kind = KIND_OF[name as keyof typeof KIND_OF];
    if (kind === undefined || !path.startsWith(folder)) return;
    const nth = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, nth);
    const more = from === undefined ? "" : ` from "${from}"`;
    const text = `${name} "${path}"${more}${creates ? " O_CREAT" : ""}`.replaceAll(folder, "");
    const call = { kind, nth, text };
    calls.push(call);
    if (failure === undefined || !failure.kinds.includes(kind) || !isMeant(failure.when, nth)) return;
    failed.push(call);
    throw Object.assign(new Error(`${failure.error}: injected: ${text}`), {
      code: failure.error,
      syscall: name,
      path,
    });
  });
  const end = await onMachine({ ...systemMachine, files }, work);
  return { ...end, calls, failed, open: openFiles().filter((path) => path.startsWith(folder)) };
}

function isMeant(when: string, nth: number): boolean {
  const [, from, until, plus, step] = /^(\d+)(?:\.\.(\d+))?(?:(\+)(\d*))?$/.exec(when) ?? [];
  const last = until ?? (plus === undefined ? from : Number.POSITIVE_INFINITY);
  return nth >= Number(from) && nth <= Number(last) && (nth - Number(from)) % Number(step || 1) === 0;
}

function openFiles(): string[] {
  return readdirSync("/proc/self/fd").map((number) => {
    try {
      return readlinkSync(`/proc/self/fd/${number}`);
    } catch {
      return "";
    }
  });
}
