/** I2 once: the daemon is stopped with SIGKILL at every one of its durable steps, and started again. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { chownSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../src/simulator/simulator.ts";
import { openConsumersEye } from "../support/consumers-eye.ts";
import { type CrashTask, runCrashDaemon } from "../support/crash-daemon.ts";
import { AT_ONCE, PLANS } from "../support/crashes.ts";
import { readTree, withoutTimes } from "../support/daemon.ts";
import { isOnRedis } from "../support/engine.ts";
import { makeFolder, runCommand } from "../support/program.ts";
import { accept, openReceiver, type Receiver } from "../support/receiver.ts";
import { startRedis } from "../support/redis.ts";
import { ROOT } from "../support/root.ts";
import { openTestSimulator } from "../support/service.ts";

const CHILD = join(ROOT, "test/support/crash-child.ts");
const NOBODY = 65534;
/** So many steps make folders and find transfers. */
const BEFORE_ANY_DELIVERY = 12;
/** For each of the two transfers: the record, its line in the journal, and what is taken away. */
const MOST_STEPS_OF_COLLECTING = 12;

describe("I2 once: the same end as if nothing had happened, after a crash at any step", () => {
  test.each([
    ["by single files", "files", false],
    ["by ZIP, while a consumer takes folders away at once", "zip", true],
  ] as const)(
    "%s",
    async (_name, fetch, takesAway) => {
      const simulator = await openTestSimulator({ transfers: PLANS });
      const undisturbed = await live(simulator, fetch, takesAway, []);
      const steps = Array.from({ length: undisturbed.steps }, (_, at) => at + 1);
      expect(steps.length).toBeGreaterThan(30);
      // On Redis each takes twice as long: what differs there does not depend on how files come.
      const points = steps.filter((step) => !isOnRedis || fetch === "files" || step % 4 === 0);
      const waiting = [...points];
      let inTime = 0;
      const work = async () => {
        for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
          const { crashed, ...life } = await live(simulator, fetch, takesAway, [point]);
          inTime += crashed;
          expect({ point, ...life, steps: 0, crashed: 0 }).toEqual({ point, ...undisturbed, steps: 0 });
        }
      };
      // There they mostly wait for the lock of the one that was killed.
      await Promise.all(Array.from({ length: isOnRedis ? 2 * AT_ONCE : AT_ONCE }, work));
      expect(inTime).toBeGreaterThanOrEqual(points.length - (takesAway ? MOST_STEPS_OF_COLLECTING : 0));
      process.stdout.write(`crash points, ${_name}: ${points.length} of ${steps.length}\n`);
    },
    600_000,
  );

  test("with a command and a webhook, which both hear of each delivery, however often, as of one", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const tells = { tells: true };
    const undisturbed = await live(simulator, "files", false, [], tells);
    expect(undisturbed.heard).toEqual(["command t1", "command t2", "webhook t1", "webhook t2"]);
    const steps = Array.from({ length: undisturbed.steps }, (_, at) => at + 1).slice(BEFORE_ANY_DELIVERY);
    const waiting = steps.filter((step) => !isOnRedis || step % 4 === 0);
    const work = async () => {
      for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
        const life = await live(simulator, "files", false, [point], tells);
        expect({ point, ...life, steps: 0 }).toEqual({ point, ...undisturbed, steps: 0, crashed: 1 });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }, 600_000);

  test("as a user other than root too, though delivered files can then not be written any more", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const user = process.getuid?.() === 0 ? { user: NOBODY } : {};
    const undisturbed = await live(simulator, "files", false, [], { ...user, fileMode: 0o440 });
    for (const crash of [20, 24, 26, 28, 30]) {
      const life = await live(simulator, "files", false, [crash], { ...user, fileMode: 0o440 });
      expect({ crash, ...life, steps: 0 }).toEqual({ crash, ...undisturbed, steps: 0, crashed: 1 });
    }
  }, 120_000);

  test("and after a second crash while it recovers from the first", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const undisturbed = await live(simulator, "files", false, []);
    for (const crashes of [
      [12, 3],
      [25, 5, 2],
      [30, 30, 30, 2],
    ]) {
      const { crashed, ...life } = await live(simulator, "files", false, crashes);
      expect(crashed).toBeGreaterThanOrEqual(2);
      expect({ ...life, steps: 0, crashed: 0 }).toEqual({ ...undisturbed, steps: 0 });
    }
  }, 120_000);
});

interface Life {
  /** Everything that a consumer got, by path. */
  readonly tree: Record<string, string>;
  readonly complaints: readonly string[];
  /** Lines of the journal that say `delivered`, by transfer. */
  readonly deliveries: Record<string, number>;
  /** Which step after the delivery was told of which transfer; once for each id that it was told. */
  readonly heard: readonly string[];
  readonly steps: number;
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
  const eye = openConsumersEye(inbox, 10);
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
    // A later crash may come too late: then there was nothing left to do. That a folder was collected is noted in
    // steps of their own, the last ones, which there are only where it was taken away in time.
    expect(crashes.length > 1 || takesAway ? [null, 0] : [null]).toContain(exitCode);
    if (exitCode === null) crashed++;
    expect(stderr).toBe("");
  }
  const steps = await countSteps(task);
  await consumer?.stop();
  await eye.close();
  const journal = readdirSync(join(inbox, ".inlet/journal")).flatMap((name) =>
    readFileSync(join(inbox, ".inlet/journal", name), "utf8")
      .trim()
      .split("\n"),
  );
  const delivered = journal.map((line) => JSON.parse(line)).filter((line) => line.state === "delivered");
  return {
    tree: withoutTimes({ ...(await readTree(inbox)), ...(await readTree(taken)) }),
    complaints: takesAway ? [] : eye.complaints,
    deliveries: Object.fromEntries(delivered.map((line) => [line.trackingId, 1])),
    heard: tells ? [...heardBy("command", notesIn(note)), ...heardBy("webhook", callsOf(receiver))] : [],
    steps,
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

/** To the end, in this process, which saves the start of one. The count is right where nothing else runs beside it. */
async function countSteps(task: CrashTask & { readonly user?: number }): Promise<number> {
  if (task.user !== undefined) {
    const { exitCode, stdout, stderr } = await runChild({ ...task, crashAt: 0 });
    expect([exitCode, stderr]).toEqual([0, ""]);
    return Number(stdout);
  }
  let steps = 0;
  const count = () => {
    steps++;
  };
  subscribe("inlet:durable-step", count);
  try {
    await runCrashDaemon(task);
  } finally {
    unsubscribe("inlet:durable-step", count);
  }
  return steps;
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
