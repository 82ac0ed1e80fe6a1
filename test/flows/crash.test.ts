/** I2 once: the daemon is killed with SIGKILL at each of its durable steps, and started again; on both engines. */

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { peekLedger } from "../../src/ledger/peek.ts";
import { OTHER_USER, runWithCrashes, walkCrashes } from "../support/crash-runs.ts";
import { readTree } from "../support/daemon.ts";
import type { CrashTask } from "../support/daemon-task.ts";
import { AT_ONCE, countBy, PLANS, runChild, runToItsEnd, walkPoints } from "../support/disturbed.ts";
import { isOnRedis } from "../support/engine.ts";
import { makeFolder } from "../support/program.ts";
import { startRedis } from "../support/redis.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";
import { oneIn } from "../support/thorough.ts";

const TIMEOUT_MS = 600_000;
/** Or one soon after it: before it, folders are created. */
const FIRST_TRANSFER_STEP = 60;

describe("I2 once: a crash at any step leads to the same end as an undisturbed run", () => {
  test(
    "in folders that do not exist yet",
    async () => {
      await walkCrashes({ isNew: true }, { every: oneIn(14), last: FIRST_TRANSFER_STEP });
    },
    TIMEOUT_MS,
  );

  test.each([
    ["by single files", "files", false],
    ["by ZIP, while a consumer takes folders away at once", "zip", true],
  ] as const)(
    "%s",
    async (_name, fetch, takesAway) => {
      // On Redis each run takes twice as long, mostly waiting for the lock of the killed one; the difference does not
      // depend on how files are fetched.
      const every = oneIn(fetch === "zip" ? 12 : 6);
      await walkCrashes({ fetch, takesAway }, { every, atOnce: isOnRedis ? 2 * AT_ONCE : AT_ONCE });
    },
    TIMEOUT_MS,
  );

  test(
    "with a command and a webhook, which both get each delivery under one id",
    async () => {
      const { handoffs } = await walkCrashes({ hasHandoff: true }, { every: oneIn(11) });
      expect(handoffs).toEqual(["command t1", "command t2", "webhook t1", "webhook t2"]);
    },
    TIMEOUT_MS,
  );

  test(
    "with a check, which sees each transfer before it appears, as a user other than root",
    async () => {
      const user = process.getuid?.() === 0 ? { user: OTHER_USER } : {};
      const { checks } = await walkCrashes({ hasCheck: true, ...user }, { every: oneIn(11) });
      expect(checks).toEqual(["t1 before", "t2 before"]);
    },
    TIMEOUT_MS,
  );

  test(
    "of a mailbox that starts now: what was there is left out, and what comes later is delivered",
    async () => {
      const crashAt = async (crashAt: number) => {
        const simulator = await openTestSimulator({ transfers: PLANS });
        const folder = await makeFolder();
        const { url, clientId } = simulator;
        const redis = isOnRedis ? (await startRedis()).url : undefined;
        const task: CrashTask = { url, clientId, folder, redis, fetch: "files", since: "now" };
        await runToItsEnd({ ...task, paused: true });
        const { exitCode } = await runChild({ ...task, crashAt });
        const starts = join(folder, "inbox/.inlet/starts");
        const hasStarted = existsSync(starts) && readdirSync(starts).length > 0;
        if (hasStarted) simulator.addTransfer(transferPlan({ trackingId: "later" }));
        await runToItsEnd(task);
        const tree = Object.keys(await readTree(join(folder, "inbox"))).filter((path) =>
          path.endsWith(".txt"),
        );
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
      const every = oneIn(3);
      expect(await walkPoints(crashAt, { points: countBy(every) })).toBeGreaterThan(2);
    },
    TIMEOUT_MS,
  );

  test(
    "and so does a second and a third crash, each during recovery from the one before",
    async () => {
      const simulator = await openTestSimulator({ transfers: PLANS });
      const { life: undisturbed } = await runWithCrashes(simulator, []);
      // The first one comes around the end of the first transfer.
      for (const [first, later] of [
        [16, 1],
        [22, 2],
        [22, 5],
        [24, 1],
      ] as const) {
        const { crashed, life } = await runWithCrashes(simulator, [first, later, later]);
        expect({ first, later, crashed, ...life }).toEqual({ first, later, crashed: 3, ...undisturbed });
      }
    },
    TIMEOUT_MS,
  );
});
