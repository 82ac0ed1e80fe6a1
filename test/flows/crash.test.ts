/** I2 once: the daemon is stopped with SIGKILL at every one of its durable steps, and started again. */

import { chownSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import { type CrashTask, runCrashDaemon } from "../support/crash-daemon.ts";
import { AT_ONCE, PLANS, walkPoints } from "../support/crashes.ts";
import { readTree, withoutTimes } from "../support/daemon.ts";
import { isOnRedis } from "../support/engine.ts";
import { observeInbox } from "../support/inbox-observer.ts";
import { makeFolder, runCommand } from "../support/program.ts";
import { accept, openReceiver, type Receiver } from "../support/receiver.ts";
import { startRedis } from "../support/redis.ts";
import { ROOT } from "../support/root.ts";
import { openTestSimulator } from "../support/service.ts";
import { oneIn } from "../support/thorough.ts";

const CHILD = join(ROOT, "test/support/crash-child.ts");
const NOBODY = 65534;
/** There are some 70; a walk that ends earlier has met a daemon that left something out. */
const LEAST_STEPS = 50;
/** So many steps make folders and find transfers. */
const BEFORE_ANY_DELIVERY = 12;

describe("I2 once: the same end as if nothing had happened, after a crash at any step", () => {
  test.each([
    ["by single files", "files", false],
    ["by ZIP, while a consumer takes folders away at once", "zip", true],
  ] as const)(
    "%s",
    async (name, fetch, takesAway) => {
      const simulator = await openTestSimulator({ transfers: PLANS });
      const { crashed: _, ...undisturbed } = await live(simulator, fetch, takesAway, []);
      const crashAt = async (point: number) => {
        const { crashed, ...life } = await live(simulator, fetch, takesAway, [point]);
        expect({ point, ...life }).toEqual({ point, ...undisturbed });
        return crashed === 1;
      };
      // On Redis each takes twice as long: what differs there does not depend on how files come. And there they mostly
      // wait for the lock of the one that was killed.
      const every = oneIn((isOnRedis ? 5 : 2) * (fetch === "zip" ? 2 : 1));
      const points = await walkPoints(crashAt, { every, atOnce: isOnRedis ? 2 * AT_ONCE : AT_ONCE });
      expect(points * every).toBeGreaterThan(LEAST_STEPS);
      process.stdout.write(`crash points, ${name}: ${points}, one of ${every}\n`);
    },
    600_000,
  );

  test("with a command and a webhook, which both hear of each delivery, however often, as of one", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const tells = { tells: true };
    const { crashed: _, ...undisturbed } = await live(simulator, "files", false, [], tells);
    expect(undisturbed.heard).toEqual(["command t1", "command t2", "webhook t1", "webhook t2"]);
    const crashAt = async (point: number) => {
      const { crashed, ...life } = await live(simulator, "files", false, [point], tells);
      expect({ point, ...life }).toEqual({ point, ...undisturbed });
      return crashed === 1;
    };
    const every = oneIn(isOnRedis ? 6 : 3);
    const points = await walkPoints(crashAt, { every, from: BEFORE_ANY_DELIVERY + 1 });
    expect(points * every).toBeGreaterThan(LEAST_STEPS);
  }, 600_000);

  test("as a user other than root too, though delivered files can then not be written any more", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const user = process.getuid?.() === 0 ? { user: NOBODY } : {};
    const undisturbed = await live(simulator, "files", false, [], { ...user, fileMode: 0o440 });
    for (const crash of [20, 24, 26, 28, 30]) {
      const life = await live(simulator, "files", false, [crash], { ...user, fileMode: 0o440 });
      expect({ crash, ...life }).toEqual({ crash, ...undisturbed, crashed: 1 });
    }
  });

  test("and after a second crash while it recovers from the first", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const { crashed: _, ...undisturbed } = await live(simulator, "files", false, []);
    for (const crashes of [
      [12, 3],
      [25, 5, 2],
      [30, 30, 30, 2],
    ]) {
      const { crashed, ...life } = await live(simulator, "files", false, crashes);
      expect(crashed).toBeGreaterThanOrEqual(2);
      expect(life).toEqual(undisturbed);
    }
  });
});

interface Life {
  /** Everything that a consumer got, by path. */
  readonly tree: Record<string, string>;
  readonly complaints: readonly string[];
  /** Lines of the journal that say `delivered`, by transfer. */
  readonly deliveries: Record<string, number>;
  /** Which step after the delivery was told of which transfer; once for each id that it was told. */
  readonly heard: readonly string[];
  /** How often it was stopped in time. */
  readonly crashed: number;
}

interface Wishes {
  readonly user?: number;
  readonly fileMode?: number;
  /** There is a command, and a webhook. */
  readonly tells?: boolean;
}

/** Runs the daemon, crashes it at each of the given steps in turn, and lets it come to its end. */
async function live(
  simulator: Simulator,
  fetch: CrashTask["fetch"],
  takesAway: boolean,
  crashes: readonly number[],
  { tells = false, ...runAs }: Wishes = {},
): Promise<Life> {
  const folder = await makeFolder();
  const note = join(folder, "note");
  const receiver = tells ? await openReceiver(accept) : undefined;
  if (runAs.user !== undefined) chownSync(folder, runAs.user, runAs.user);
  const [inbox, taken] = [join(folder, "inbox"), join(folder, "taken")];
  // What a crash leaves stays: it need not look all the time, which would take the daemon its processor.
  const observer = observeInbox(inbox, 10);
  const consumer = takesAway ? startConsumer(inbox, taken) : undefined;
  const { url, clientId } = simulator;
  const task = {
    url,
    clientId,
    folder,
    fetch,
    redis: isOnRedis ? (await startRedis()).url : undefined,
    ...runAs,
    ...(receiver === undefined ? {} : { handoff: { command: noteIn(note), webhook: receiver.url } }),
  };
  let crashed = 0;
  for (const crashAt of crashes) {
    const { exitCode, stderr } = await runChild({ ...task, crashAt });
    // A crash may come too late: then there was nothing left to do.
    expect([
      [null, ""],
      [0, ""],
    ]).toContainEqual([exitCode, stderr]);
    if (exitCode === null) crashed++;
  }
  await runToItsEnd(task);
  await consumer?.stop();
  await observer.close();
  const journal = readdirSync(join(inbox, ".inlet/journal")).flatMap((name) =>
    readFileSync(join(inbox, ".inlet/journal", name), "utf8")
      .trim()
      .split("\n"),
  );
  const delivered = journal.map((line) => JSON.parse(line)).filter((line) => line.state === "delivered");
  return {
    tree: withoutTimes({ ...(await readTree(inbox)), ...(await readTree(taken)) }),
    complaints: takesAway ? [] : observer.problems,
    deliveries: Object.fromEntries(delivered.map((line) => [line.trackingId, 1])),
    heard: tells ? [...heardBy("command", notesIn(note)), ...heardBy("webhook", callsOf(receiver))] : [],
    crashed,
  };
}

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

/** At least once is as good as once, where the id is the same. */
function heardBy(step: string, told: readonly string[]): string[] {
  return [...new Set(told)].map((line) => `${step} ${line.split(" ")[1]}`).toSorted();
}

/** To the end, in this process where it can, which saves the start of one. */
async function runToItsEnd(task: CrashTask & { readonly user?: number }): Promise<void> {
  if (task.user === undefined) return void (await runCrashDaemon(task));
  const { exitCode, stderr } = await runChild({ ...task, crashAt: 0 });
  expect([exitCode, stderr]).toEqual([0, ""]);
}

function runChild(task: object) {
  return runCommand(process.execPath, [CHILD, JSON.stringify(task)], { cwd: ROOT });
}

/** Moves every folder that appears out of the inbox; one that appears twice makes it fail. */
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
    for (const name of names) renameSync(join(inbox, mailbox, name), join(taken, mailbox, name));
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
