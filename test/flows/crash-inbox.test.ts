/**
 * I2 once: the daemon is killed with SIGKILL at each of its durable steps, and started again; for everything that differs
 * only in the inbox, which is the same on both engines. The forms of a delivery are walked in the simulated world.
 */

import { describe, expect, test } from "vitest";
import { OTHER_USER, walkCrashes } from "../support/crash-runs.ts";
import { oneIn } from "../support/thorough.ts";

const TIMEOUT_MS = 600_000;

describe("I2 once: a crash at any step leads to the same end as an undisturbed run", () => {
  test(
    "into the mailbox's own inbox",
    async () => {
      const { tree } = await walkCrashes({ hasInbox: true, isNew: true }, { every: oneIn(12) });
      const paths = Object.keys(tree);
      expect(paths.filter((path) => !path.startsWith("own/orders@example.com/t"))).toEqual([]);
      expect(paths).not.toEqual([]);
    },
    TIMEOUT_MS,
  );

  test("with a group for delivered files, as a user other than root", {
    tags: ["system"],
    timeout: TIMEOUT_MS,
  }, async () => {
    const { groups, staged } = await walkCrashes({ user: OTHER_USER, group: "17001" }, { every: oneIn(12) });
    expect([groups, staged]).toEqual([[17_001], []]);
  });

  test(
    "also as a user other than root, who cannot write delivered files",
    async () => {
      const user = process.getuid?.() === 0 ? { user: OTHER_USER } : {};
      await walkCrashes({ ...user, fileMode: 0o440 }, { every: oneIn(12) });
    },
    TIMEOUT_MS,
  );
});
