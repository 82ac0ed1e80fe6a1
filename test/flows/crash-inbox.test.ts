/**
 * I2 once: the daemon is killed with SIGKILL at each of its durable steps, and started again; for everything that differs
 * only in the inbox, which is the same on both engines.
 */

import { describe, expect, test } from "vitest";
import { BEFORE_ANY_DELIVERY, OTHER_USER, runWithCrashes, walkCrashes } from "../support/crash-runs.ts";
import { PLANS } from "../support/crashes.ts";
import type { HandoffTask } from "../support/handoff.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { oneIn } from "../support/thorough.ts";
import { writeZip } from "../support/zip-writer.ts";

const TIMEOUT_MS = 600_000;

describe("I2 once: a crash at any step leads to the same end as an undisturbed run", () => {
  test.each<[string, HandoffTask]>([
    [
      "single files, with done-markers and a manifest",
      { deliver: "files", manifest: "beside", done: ".done" },
    ],
    ["folders with manifest and done-marker beside them", { manifest: "beside", done: ".done" }],
  ])(
    "with %s, while a consumer takes everything at once",
    async (_name, handoff) => {
      const { tree } = await walkCrashes({ handoff, takesAway: true }, afterDiscovery());
      expect(Object.keys(tree).filter((path) => path.endsWith(".done"))).not.toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "with an archive that is unpacked",
    async () => {
      const entries = ["a.txt", "docs/a.txt", "docs/b.txt"].map((name) => ({ name, content: name }));
      const files = [{ name: "data.zip", base64: writeZip(entries).toString("base64") }];
      const transfers = [transferPlan({ trackingId: "t3", files })];
      const { tree } = await walkCrashes({ handoff: { unpack: "instead" }, transfers }, afterDiscovery());
      const unpacked = Object.values(tree).filter((text) => entries.some(({ content }) => content === text));
      expect(unpacked).toHaveLength(entries.length);
    },
    TIMEOUT_MS,
  );

  test(
    "into the mailbox's own inbox",
    async () => {
      const { tree } = await walkCrashes({ hasInbox: true }, { every: oneIn(3) });
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
    const { groups, staged } = await walkCrashes({ user: OTHER_USER, group: "17001" }, afterDiscovery());
    expect([groups, staged]).toEqual([[17_001], []]);
  });

  test("also as a user other than root, who cannot write delivered files", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const user = process.getuid?.() === 0 ? { user: OTHER_USER } : {};
    const options = { ...user, fileMode: 0o440 };
    const { life: undisturbed } = await runWithCrashes(simulator, [], options);
    for (const crash of [20, 24, 26, 28, 30]) {
      const { crashed, life } = await runWithCrashes(simulator, [crash], options);
      expect({ crash, crashed, ...life }).toEqual({ crash, crashed: 1, ...undisturbed });
    }
  });
});

function afterDiscovery() {
  return { every: oneIn(3), from: BEFORE_ANY_DELIVERY + 1 };
}
