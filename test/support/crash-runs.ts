/** Daemons that are killed with SIGKILL at durable steps, and what they leave behind at the end. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect } from "vitest";
import { readTree, withoutTimes } from "./daemon.ts";
import { type CrashTask, runCrashDaemon } from "./daemon-task.ts";
import { AT_ONCE, PLANS, runChild, runToItsEnd, walkPoints } from "./disturbed.ts";
import { isOnRedis } from "./engine.ts";
import { observeInbox } from "./inbox-observer.ts";
import { makeFolder, runCommand } from "./program.ts";
import { accept, openReceiver, type Receiver } from "./receiver.ts";
import { startRedis } from "./redis.ts";
import { openTestSimulator } from "./service.ts";

export const OTHER_USER = 65534;
/** There are some 26 that change something: fewer mean that the daemon left something out. */
const MIN_STEPS = 20;
/** The number of steps differs a little from run to run. */
const SPARE_POINTS = 2;

/** The end of a daemon that was killed, or of one that was not. */
interface CrashedLife {
  /** All delivered files, by path. */
  readonly tree: Record<string, string>;
  /** The groups of everything that was delivered. */
  readonly groups: readonly number[];
  readonly problems: readonly string[];
  /** Lines `delivered` in the journal, by transfer. */
  readonly deliveries: Record<string, number>;
  /** Step and transfer of each hand-off; repeated ids count once. */
  readonly handoffs: readonly string[];
  /** Each transfer, and whether it was checked before or after its delivery; repeated checks count once. */
  readonly checks: readonly string[];
  /** Staged folders and claimed names that are left. */
  readonly staged: readonly string[];
}

interface CrashOptions {
  /** The daemon also creates the folders, with some 50 more steps. */
  readonly isNew?: boolean;
  /** The default is `files`. */
  readonly fetch?: CrashTask["fetch"];
  /** A consumer takes everything at once. */
  readonly takesAway?: boolean;
  readonly user?: number;
  readonly fileMode?: number;
  /** The number of the group of delivered files. */
  readonly group?: string;
  /** With a command and a webhook. */
  readonly hasHandoff?: boolean;
  readonly hasCheck?: boolean;
  /** The mailbox has its own inbox. */
  readonly hasInbox?: boolean;
}

/**
 * Kills a daemon at one of `every` steps, each time in new folders. Each one must lead to the same end as a daemon that was
 * not killed, which is returned. Steps that change nothing on the disk, such as a sync, are left out: the kill leaves what
 * a kill at the step before leaves.
 */
export async function walkCrashes(
  options: CrashOptions,
  which: { readonly every: number; readonly last?: number; readonly atOnce?: number },
): Promise<CrashedLife> {
  const simulator = await openTestSimulator({ transfers: PLANS });
  const { life: undisturbed, ...own } = await runWithCrashes(simulator, [], options);
  // Only the steps of this process can be watched.
  const { user, ...others } = options;
  const { steps } = user === undefined ? own : await runWithCrashes(simulator, [], others);
  const points = steps
    .filter((_, index) => (index + 1) % which.every === 0)
    .filter((it) => it <= (which.last ?? it));
  const crashAt = async (point: number) => {
    const { crashed, life } = await runWithCrashes(simulator, [point], options);
    expect({ point, ...life }).toEqual({ point, ...undisturbed });
    return crashed === 1;
  };
  const reached = await walkPoints(crashAt, { points, atOnce: which.atOnce ?? AT_ONCE });
  expect(reached).toBeGreaterThanOrEqual(points.length - SPARE_POINTS);
  expect(steps.length).toBeGreaterThan(MIN_STEPS);
  process.stdout.write(`crash points: ${reached}, one of ${which.every}\n`);
  return undisturbed;
}

/**
 * Runs a daemon, kills it at each of the given steps in turn, and runs it to its end. `steps`: the numbers of the steps to
 * the end that change the disk.
 */
export async function runWithCrashes(
  { url, clientId }: Pick<CrashTask, "url" | "clientId">,
  crashes: readonly number[],
  options: CrashOptions = {},
): Promise<{ readonly crashed: number; readonly life: CrashedLife; readonly steps: readonly number[] }> {
  const { fetch = "files", isNew = false, hasCheck = false, hasInbox = false, user } = options;
  const folder = await makeFolder();
  const { inbox, taken, own, note } = pathsIn(folder);
  const receiver = options.hasHandoff ? await openReceiver(accept) : undefined;
  // Results of a crash stay, so the observer may pause and leave the processor to the daemon.
  const observer = observeInbox(hasInbox ? own : inbox, 10);
  const consumer = options.takesAway ? startConsumer(inbox, taken) : undefined;
  const task = {
    url,
    clientId,
    folder,
    fetch,
    redis: isOnRedis ? (await startRedis()).url : undefined,
    ...(user === undefined ? {} : { user }),
    ...(options.fileMode === undefined ? {} : { fileMode: options.fileMode }),
    ...(options.group === undefined ? {} : { group: options.group }),
    ...(hasInbox ? { inbox: own } : {}),
    ...(hasCheck ? { check: [CHECK, note, join(inbox, "orders@example.com")] as const } : {}),
    ...(receiver === undefined ? {} : { handoff: { command: noteIn(note), webhook: receiver.url } }),
  };
  if (!isNew) await runCrashDaemon({ ...task, paused: true });
  if (user !== undefined) await runCommand("chown", ["-R", `${user}:${user}`, folder]);
  let crashed = 0;
  for (const crashAt of crashes) {
    const { exitCode, stderr } = await runChild({ ...task, crashAt });
    // A run may end before its crash.
    expect([
      [null, ""],
      [0, ""],
    ]).toContainEqual([exitCode, stderr]);
    if (exitCode === null) crashed++;
  }
  // On Redis, steps that change nothing on the disk may come after a change of the queue.
  const outside = () => `${receiver?.calls.length} ${isOnRedis ? performance.now() : ""}`;
  const isUndisturbed = crashes.length === 0 && user === undefined;
  const steps = isUndisturbed
    ? await stepsOf(
        () => runToItsEnd(task),
        () => `${describeFiles(folder)} ${outside()}`,
      )
    : await runToItsEnd(task).then(() => []);
  await consumer?.stop();
  observer.close();
  return { crashed, life: await readLife(folder, options, observer.problems, callsOf(receiver)), steps };
}

/** The numbers of the steps of `run` after which `look` gives another answer than after the step before. */
async function stepsOf(run: () => Promise<void>, look: () => string): Promise<number[]> {
  const steps: number[] = [];
  let [number, last] = [0, ""];
  const note = () => {
    number++;
    const now = look();
    if (now !== last) steps.push(number);
    last = now;
  };
  subscribe("inlet:durable-step", note);
  await run();
  unsubscribe("inlet:durable-step", note);
  return steps;
}

/** Everything in a folder that a change would change. */
function describeFiles(folder: string): string {
  let paths: string[];
  try {
    paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
  } catch {
    // A folder was removed meanwhile, which is a change.
    return String(performance.now());
  }
  const described = paths.map((path) => {
    // A consumer may have taken it.
    const found = statSync(join(folder, path), { throwIfNoEntry: false });
    return [path, found?.ino, found?.mode, found?.gid, found?.isFile() && [found.size, found.mtimeMs]];
  });
  return JSON.stringify(described);
}

function pathsIn(folder: string) {
  const [inbox, taken, own] = [join(folder, "inbox"), join(folder, "taken"), join(folder, "own")];
  return { inbox, taken, own, note: join(folder, "note") };
}

/** `problems`: what an observer saw. `calls`: of the webhook. */
async function readLife(
  folder: string,
  { takesAway = false, hasHandoff = false, hasCheck = false }: CrashOptions,
  problems: readonly string[],
  calls: readonly string[],
): Promise<CrashedLife> {
  const { inbox, taken, own, note } = pathsIn(folder);
  const journal = readdirSync(join(inbox, ".inlet/journal")).flatMap((name) =>
    readFileSync(join(inbox, ".inlet/journal", name), "utf8")
      .trim()
      .split("\n"),
  );
  const delivered = journal.map((line) => JSON.parse(line)).filter((line) => line.state === "delivered");
  return {
    tree: withoutTimes({ ...(await readTree(inbox)), ...(await readTree(taken)), ...(await ownTree(own)) }),
    groups: groupsBelow(inbox),
    problems: takesAway ? [] : problems,
    deliveries: Object.fromEntries(delivered.map((line) => [line.trackingId, 1])),
    handoffs: hasHandoff ? [...receivedBy("command", notesIn(note)), ...receivedBy("webhook", calls)] : [],
    staged: ["staging", "names"].flatMap((name) => readdirSync(join(inbox, ".inlet", name))),
    checks: hasCheck ? [...new Set(notesIn(note))].toSorted() : [],
  };
}

/** Without hidden names. */
function groupsBelow(inbox: string): number[] {
  const paths = readdirSync(inbox, { recursive: true, encoding: "utf8" }).filter((it) => !it.startsWith("."));
  return [...new Set(paths.map((path) => statSync(join(inbox, path)).gid))];
}

async function ownTree(own: string): Promise<Record<string, string>> {
  const files = Object.entries(await readTree(own)).map(([path, text]) => [`own/${path}`, text]);
  return Object.fromEntries(files);
}

/** Notes whether the transfer is in the inbox. The files of the folder must be complete. */
const CHECK =
  'sha256sum --quiet -c SHA256SUMS && [ -e READY ] || exit 1; [ -e "$1/$INLET_TRACKING_ID" ] && at=after || at=before; echo "$INLET_TRACKING_ID $at" >> "$0"';

function noteIn(path: string): readonly [string, ...string[]] {
  return ["sh", "-c", 'echo "$INLET_ID $INLET_TRACKING_ID" >> "$0"', path];
}

function notesIn(path: string): string[] {
  return readFileSync(path, "utf8").trim().split("\n");
}

function callsOf(receiver: Receiver | undefined): string[] {
  return (receiver?.calls ?? []).map(({ body }) => {
    const { id, trackingId } = JSON.parse(body);
    return `${id} ${trackingId}`;
  });
}

/** Repeated calls with the same id count as one. */
function receivedBy(step: string, lines: readonly string[]): string[] {
  return [...new Set(lines)].map((line) => `${step} ${line.split(" ")[1]}`).toSorted();
}

/** Moves every folder out of the inbox as soon as it appears. Fails if one appears twice. */
function startConsumer(inbox: string, taken: string): { stop(): Promise<void> } {
  const mailbox = "orders@example.com";
  mkdirSync(join(taken, mailbox), { recursive: true });
  let open = true;
  const take = () => {
    let names: string[] = [];
    try {
      names = readdirSync(join(inbox, mailbox));
    } catch {
      return;
    }
    for (const name of names) {
      if (existsSync(join(taken, mailbox, name))) throw new Error(`${name} appears twice`);
      renameSync(join(inbox, mailbox, name), join(taken, mailbox, name));
    }
  };
  const work = (async () => {
    while (open) {
      take();
      await setTimeout(1);
    }
    take();
  })();
  return {
    async stop() {
      open = false;
      await work;
    },
  };
}
