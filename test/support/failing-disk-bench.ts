/** Where a daemon is sent through a life on a disk that fails, then through one on a disk that does not. */
import { existsSync } from "node:fs";
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { onTestFinished } from "vitest";
import { openConsumersEye } from "./consumers-eye.ts";
import { readTree, withoutTimes } from "./daemon.ts";
import {
  type Call,
  type DiskDaemon,
  type Failure,
  readCalls,
  type Seen,
  startDiskDaemon,
  writtenBy,
} from "./failing-disk.ts";
import type { Life } from "./failing-disk-child.ts";
import { openTestSimulator, transferPlan } from "./service.ts";
import { MAILBOX } from "./settings.ts";

/** Power cuts are not the matter here, so memory will do. */
const DISK = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const LOOK_MS = 2;
const HOUR_MS = 60 * 60_000;
const WELL = { failedPolls: 0, unsettled: 0 };

/** Plain names: strace writes others in a way of its own. */
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

/** What happened in the folder before this life. */
export type Past = "nothing" | "a start" | "a refused rename" | "an unsynced rename";

export interface Point extends Failure {
  readonly past: Past;
  /** The daemon runs on until all is delivered. */
  readonly runsOn?: boolean;
}

interface Visit {
  /** The calls that were made to fail. */
  readonly failed: readonly string[];
  readonly problems: readonly string[];
}

export interface Bench {
  /** As many can be in use at once. */
  readonly places: readonly number[];
  /** The calls that a life makes when nothing fails. */
  calls(past: Past): Promise<Call[]>;
  visit(place: number, point: Point): Promise<Visit>;
}

/** Two places, for two processors. */
export async function openBench(fetch: Life["fetch"]): Promise<Bench> {
  const simulator = await openTestSimulator({ transfers: PLANS });
  const service = { url: simulator.url, clientId: simulator.clientId, fetch };
  const daemons = await Promise.all([startDiskDaemon(), startDiskDaemon()]);
  const [daemon] = daemons;
  // What is loaded late is loaded now.
  for (const each of daemons) await each.live({ ...service, folder: await makeDisk() });
  const pasts = new Map<Past, string>();
  const begin = async (past: Past) => {
    const [from, folder] = [pasts.get(past), await makeDisk()];
    if (from !== undefined) await cp(from, folder, { recursive: true });
    return { ...service, folder, aheadMs: HOUR_MS };
  };

  const undisturbed = await begin("nothing");
  const calls = readCalls((await daemon.liveTraced(undisturbed)).calls, undisturbed.folder);
  const tree = withoutTimes(await readTree(join(undisturbed.folder, "inbox")));
  const written = writtenBy(calls);
  const started = await makeDisk();
  await daemon.live({ ...service, folder: started, paused: true });
  pasts.set("a start", started);
  for (const [past, { kind, nth }] of firstFailures(calls)) {
    const folder = await makeDisk();
    const failure = { kinds: [kind], error: "EIO", when: String(nth) } as const;
    await daemon.liveFailing({ ...service, folder }, failure, written);
    pasts.set(past, folder);
  }

  return {
    places: [...daemons.keys()],
    async calls(past) {
      const life = await begin(past);
      return readCalls((await daemon.liveTraced(life)).calls, life.folder);
    },
    async visit(place, point) {
      const life = await begin(point.past);
      const visit = await goThrough(daemons[place] as DiskDaemon, life, point, written, tree);
      if (visit.died) daemons[place] = await startDiskDaemon();
      await rm(life.folder, { recursive: true });
      return visit;
    },
  };
}

/** At which call a first life has to fail for a second one to have that past. */
function firstFailures(calls: readonly Call[]): [Past, Call][] {
  const renames = calls.filter(({ kind }) => kind === "rename");
  const delivery = renames.find(({ text }) => /\/staging\/.*\/inbox\//.test(text));
  const sync = calls.find(
    ({ kind }, at) => kind === "fsync" && delivery !== undefined && at > calls.indexOf(delivery),
  );
  if (delivery === undefined || sync === undefined) {
    throw new Error("an undisturbed life delivered nothing");
  }
  return [
    ["a refused rename", delivery],
    ["an unsynced rename", sync],
  ];
}

async function goThrough(
  daemon: DiskDaemon,
  life: Life,
  point: Point,
  written: readonly string[],
  tree: Readonly<Record<string, string>>,
): Promise<Visit & { died: boolean }> {
  const { folder } = life;
  const inbox = join(folder, "inbox");
  const isDelivered = async () => isDeepStrictEqual(withoutTimes(await readTree(inbox)), tree);
  const eye = openConsumersEye(inbox, LOOK_MS);
  const ill = await daemon.liveFailing(point.runsOn ? { ...life, until: TARGETS } : life, point, written);
  const problems = problemsOf(ill);
  if (isSaidToBeWell(ill) && !(await isDelivered())) problems.push("it says that all is well, and it is not");
  const well = "died" in ill ? ill : await daemon.live({ ...life, aheadMs: 2 * HOUR_MS });
  await eye.close();
  problems.push(...eye.complaints);
  if (well !== ill) {
    problems.push(...problemsOf(well).map((problem) => `started again: ${problem}`));
    if (!isSaidToBeWell(well)) problems.push(`started again: ${JSON.stringify({ ...well, calls: [] })}`);
    if (!(await isDelivered())) problems.push(`delivered: ${Object.keys(await readTree(inbox)).join(" ")}`);
    problems.push(...(await leftOvers(folder)).map((path) => `left behind: ${path}`));
  }
  const failed = ill.calls.filter((call) => call.endsWith("(INJECTED)"));
  return {
    failed: failed.map((call) => call.replaceAll(folder, "")),
    problems: problems.map((problem) => problem.replaceAll(folder, "")),
    died: "died" in well,
  };
}

function isSaidToBeWell(seen: Seen): boolean {
  return "outcome" in seen && isDeepStrictEqual(seen.outcome, WELL);
}

/** A life may end with a fault, which tells people what to do; with nothing else. */
function problemsOf(seen: Seen): string[] {
  if ("died" in seen) return [`the process died: ${seen.died}`];
  const { error, open } = seen;
  return [
    ...(error === undefined ? [] : [`no fault: ${error}`]),
    ...open.map((path) => `not closed: ${path}`),
  ];
}

/** Halves, and what is only kept while a transfer is in work. */
async function leftOvers(folder: string): Promise<string[]> {
  const paths = await readdir(folder, { recursive: true });
  return paths.filter((path) => /\.part$|\.inlet\/(staging|quarantine|notes|new)\/./.test(path));
}

async function makeDisk(): Promise<string> {
  const folder = await mkdtemp(join(DISK, "inlet-disk-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
