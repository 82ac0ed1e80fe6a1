/** I2 once: the daemon is killed with SIGKILL at each of its durable steps, and started again. */

import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import { peekLedger } from "../../src/ledger/peek.ts";
import { type CrashTask, runCrashDaemon } from "../support/crash-daemon.ts";
import { AT_ONCE, PLANS, walkPoints } from "../support/crashes.ts";
import { readTree, withoutTimes } from "../support/daemon.ts";
import { isOnRedis } from "../support/engine.ts";
import type { HandoffTask } from "../support/handoff.ts";
import { observeInbox } from "../support/inbox-observer.ts";
import { childProgram, makeFolder, runCommand } from "../support/program.ts";
import { accept, openReceiver, type Receiver } from "../support/receiver.ts";
import { startRedis } from "../support/redis.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";
import { oneIn } from "../support/thorough.ts";

const OTHER_USER = 65534;
/** There are some 70: fewer mean that the daemon left something out. */
const MIN_STEPS = 50;
/** These steps create folders and discover transfers. */
const BEFORE_ANY_DELIVERY = 12;

describe("I2 once: a crash at any step leads to the same end as an undisturbed run", () => {
  test.each([
    ["by single files", "files", false],
    ["by ZIP, while a consumer takes folders away at once", "zip", true],
  ] as const)(
    "%s",
    async (name, fetch, takesAway) => {
      const simulator = await openTestSimulator({ transfers: PLANS });
      const { crashed: _, ...undisturbed } = await runWithCrashes(simulator, fetch, takesAway, []);
      const crashAt = async (point: number) => {
        const { crashed, ...life } = await runWithCrashes(simulator, fetch, takesAway, [point]);
        expect({ point, ...life }).toEqual({ point, ...undisturbed });
        return crashed === 1;
      };
      // On Redis each run takes twice as long, mostly waiting for the lock of the killed one; the difference does not
      // depend on how files are fetched.
      const every = oneIn((isOnRedis ? 5 : 2) * (fetch === "zip" ? 2 : 1));
      const points = await walkPoints(crashAt, { every, atOnce: isOnRedis ? 2 * AT_ONCE : AT_ONCE });
      expect(points * every).toBeGreaterThan(MIN_STEPS);
      process.stdout.write(`crash points, ${name}: ${points}, one of ${every}\n`);
    },
    600_000,
  );

  test("with a command and a webhook, which both get each delivery under one id", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const hasHandoff = { hasHandoff: true };
    const { crashed: _, ...undisturbed } = await runWithCrashes(simulator, "files", false, [], hasHandoff);
    expect(undisturbed.handoffs).toEqual(["command t1", "command t2", "webhook t1", "webhook t2"]);
    const crashAt = async (point: number) => {
      const { crashed, ...life } = await runWithCrashes(simulator, "files", false, [point], hasHandoff);
      expect({ point, ...life }).toEqual({ point, ...undisturbed });
      return crashed === 1;
    };
    const every = oneIn(isOnRedis ? 6 : 3);
    const points = await walkPoints(crashAt, { every, from: BEFORE_ANY_DELIVERY + 1 });
    expect(points * every).toBeGreaterThan(MIN_STEPS);
  }, 600_000);

  test.each<[string, HandoffTask]>([
    [
      "single files, with done-markers and a manifest",
      { deliver: "files", manifest: "beside", done: ".done" },
    ],
    ["folders with manifest and done-marker beside them", { manifest: "beside", done: ".done" }],
  ])(
    "with %s, while a consumer takes everything at once",
    async (name, handoff) => {
      const simulator = await openTestSimulator({ transfers: PLANS });
      const { crashed: _, ...undisturbed } = await runWithCrashes(simulator, "files", true, [], { handoff });
      expect(Object.keys(undisturbed.tree).filter((path) => path.endsWith(".done"))).not.toEqual([]);
      const crashAt = async (point: number) => {
        const { crashed, ...life } = await runWithCrashes(simulator, "files", true, [point], { handoff });
        expect({ point, ...life }).toEqual({ point, ...undisturbed });
        return crashed === 1;
      };
      const every = oneIn(isOnRedis ? 6 : 3);
      const points = await walkPoints(crashAt, { every, from: BEFORE_ANY_DELIVERY + 1 });
      expect(points * every).toBeGreaterThan(MIN_STEPS);
      process.stdout.write(`crash points, ${name}: ${points}, one of ${every}\n`);
    },
    600_000,
  );

  test("with a check, which sees each transfer before it appears, as a user other than root", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const checked = { hasCheck: true, ...(process.getuid?.() === 0 ? { user: OTHER_USER } : {}) };
    const { crashed: _, ...undisturbed } = await runWithCrashes(simulator, "files", false, [], checked);
    expect(undisturbed.checks).toEqual(["t1 before", "t2 before"]);
    const crashAt = async (point: number) => {
      const { crashed, ...life } = await runWithCrashes(simulator, "files", false, [point], checked);
      expect({ point, ...life }).toEqual({ point, ...undisturbed });
      return crashed === 1;
    };
    const every = oneIn(isOnRedis ? 6 : 3);
    const points = await walkPoints(crashAt, { every, from: BEFORE_ANY_DELIVERY + 1 });
    expect(points * every).toBeGreaterThan(MIN_STEPS);
  }, 600_000);

  test("into the mailbox's own inbox", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const own = { hasInbox: true };
    const { crashed: _, ...undisturbed } = await runWithCrashes(simulator, "files", false, [], own);
    expect(Object.keys(undisturbed.tree).every((path) => path.startsWith("own/orders@example.com/t"))).toBe(
      true,
    );
    const crashAt = async (point: number) => {
      const { crashed, ...life } = await runWithCrashes(simulator, "files", false, [point], own);
      expect({ point, ...life }).toEqual({ point, ...undisturbed });
      return crashed === 1;
    };
    const every = oneIn(isOnRedis ? 6 : 3);
    const points = await walkPoints(crashAt, { every });
    expect(points * every).toBeGreaterThan(MIN_STEPS);
  }, 600_000);

  test("with a group for delivered files, as a user other than root", {
    tags: ["system"],
    timeout: 600_000,
  }, async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const grouped = { user: OTHER_USER, group: "17001" };
    const { crashed: _, ...undisturbed } = await runWithCrashes(simulator, "files", false, [], grouped);
    expect(undisturbed).toMatchObject({ groups: [17_001], staged: [] });
    const crashAt = async (point: number) => {
      const { crashed, ...life } = await runWithCrashes(simulator, "files", false, [point], grouped);
      expect({ point, ...life }).toEqual({ point, ...undisturbed });
      return crashed === 1;
    };
    const every = oneIn(isOnRedis ? 6 : 3);
    const points = await walkPoints(crashAt, { every, from: BEFORE_ANY_DELIVERY + 1 });
    expect(points * every).toBeGreaterThan(MIN_STEPS);
  });

  test("also as a user other than root, who cannot write delivered files", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const user = process.getuid?.() === 0 ? { user: OTHER_USER } : {};
    const undisturbed = await runWithCrashes(simulator, "files", false, [], { ...user, fileMode: 0o440 });
    for (const crash of [20, 24, 26, 28, 30]) {
      const life = await runWithCrashes(simulator, "files", false, [crash], { ...user, fileMode: 0o440 });
      expect({ crash, ...life }).toEqual({ crash, ...undisturbed, crashed: 1 });
    }
  });

  test("of a mailbox that starts now: what was there is left out, and what comes later is delivered", async () => {
    const crashAt = async (crashAt: number) => {
      const simulator = await openTestSimulator({ transfers: PLANS });
      const folder = await makeFolder();
      const { url, clientId } = simulator;
      const redis = isOnRedis ? (await startRedis()).url : undefined;
      const task: CrashTask = { url, clientId, folder, redis, fetch: "files", since: "now" };
      const { exitCode } = await runChild({ ...task, crashAt });
      const starts = join(folder, "inbox/.inlet/starts");
      const hasStarted = existsSync(starts) && readdirSync(starts).length > 0;
      if (hasStarted) simulator.addTransfer(transferPlan({ trackingId: "later" }));
      await runToItsEnd(task);
      const tree = Object.keys(await readTree(join(folder, "inbox"))).filter((path) => path.endsWith(".txt"));
      expect([crashAt, tree]).toEqual([crashAt, hasStarted ? ["orders@example.com/later/a.txt"] : []]);
      const records = await Promise.all(
        PLANS.map(({ trackingId = "" }) =>
          peekLedger({ work: join(folder, "inbox/.inlet"), inbox: join(folder, "inbox") }).find({
            mailbox: MAILBOX,
            trackingId,
          }),
        ),
      );
      expect(records.map((record) => record?.reason)).toEqual(["ignored", "ignored"]);
      return exitCode === null;
    };
    const every = oneIn(isOnRedis ? 4 : 2);
    expect(await walkPoints(crashAt, { every })).toBeGreaterThan(2);
  }, 600_000);

  test("and so does a second crash during recovery from the first", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const { crashed: _, ...undisturbed } = await runWithCrashes(simulator, "files", false, []);
    for (const crashes of [
      [12, 3],
      [25, 5, 2],
      [30, 30, 30, 2],
    ]) {
      const { crashed, ...life } = await runWithCrashes(simulator, "files", false, crashes);
      expect(crashed).toBeGreaterThanOrEqual(2);
      expect(life).toEqual(undisturbed);
    }
  });
});

interface CrashRun {
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
  /** How often it was killed before its end. */
  readonly crashed: number;
}

interface RunOptions {
  readonly user?: number;
  readonly fileMode?: number;
  /** The number of the group of delivered files. */
  readonly group?: string;
  /** With a command and a webhook. */
  readonly hasHandoff?: boolean;
  readonly hasCheck?: boolean;
  /** The mailbox has its own inbox. */
  readonly hasInbox?: boolean;
  readonly handoff?: HandoffTask;
}

/** Runs the daemon, kills it at each of the given steps in turn, and runs it to its end. */
async function runWithCrashes(
  simulator: Simulator,
  fetch: CrashTask["fetch"],
  takesAway: boolean,
  crashes: readonly number[],
  { hasHandoff = false, hasCheck = false, hasInbox = false, handoff, ...runAs }: RunOptions = {},
): Promise<CrashRun> {
  const folder = await makeFolder();
  const note = join(folder, "note");
  const receiver = hasHandoff ? await openReceiver(accept) : undefined;
  if (runAs.user !== undefined) chownSync(folder, runAs.user, runAs.user);
  const [inbox, taken, own] = [join(folder, "inbox"), join(folder, "taken"), join(folder, "own")];
  // Results of a crash stay, so the observer may pause and leave the processor to the daemon.
  const observer = observeInbox(hasInbox ? own : inbox, 10);
  const consumer = takesAway ? startConsumer(inbox, taken) : undefined;
  const { url, clientId } = simulator;
  const task = {
    url,
    clientId,
    folder,
    fetch,
    redis: isOnRedis ? (await startRedis()).url : undefined,
    ...runAs,
    ...(hasInbox ? { inbox: own } : {}),
    ...(hasCheck ? { check: [CHECK, note, join(inbox, "orders@example.com")] as const } : {}),
    ...(handoff === undefined ? {} : { handoff }),
    ...(receiver === undefined ? {} : { handoff: { command: noteIn(note), webhook: receiver.url } }),
  };
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
  await runToItsEnd(task);
  await consumer?.stop();
  observer.close();
  const journal = readdirSync(join(inbox, ".inlet/journal")).flatMap((name) =>
    readFileSync(join(inbox, ".inlet/journal", name), "utf8")
      .trim()
      .split("\n"),
  );
  const delivered = journal.map((line) => JSON.parse(line)).filter((line) => line.state === "delivered");
  return {
    tree: withoutTimes({ ...(await readTree(inbox)), ...(await readTree(taken)), ...(await ownTree(own)) }),
    groups: groupsBelow(inbox),
    problems: takesAway ? [] : observer.problems,
    deliveries: Object.fromEntries(delivered.map((line) => [line.trackingId, 1])),
    handoffs: hasHandoff
      ? [...receivedBy("command", notesIn(note)), ...receivedBy("webhook", callsOf(receiver))]
      : [],
    staged: ["staging", "names"].flatMap((name) => readdirSync(join(inbox, ".inlet", name))),
    checks: hasCheck ? [...new Set(notesIn(note))].toSorted() : [],
    crashed,
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

/** In this process if possible, which saves a start. */
async function runToItsEnd(task: CrashTask & { readonly user?: number }): Promise<void> {
  if (task.user === undefined) return void (await runCrashDaemon(task));
  const { exitCode, stderr } = await runChild({ ...task, crashAt: 0 });
  expect([exitCode, stderr]).toEqual([0, ""]);
}

function runChild(task: object) {
  return runCommand(process.execPath, [childProgram("crash-child"), JSON.stringify(task)]);
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
