/** Slow downloads give way while others wait, with each engine. */
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import type { FaultPlan } from "../../simulator/scenario.ts";
import { startDaemon } from "../support/daemon.ts";
import { openMailbox } from "../support/one-mailbox.ts";
import { transferPlan } from "../support/service.ts";

const DAY_SECONDS = 24 * 60 * 60;
const SLOW = { on: "file", file: "slow.bin", times: "always" } as const;
/** 10 KB per second. */
const DRIP: FaultPlan = { ...SLOW, does: { kind: "drip", bytes: 1_000, pauseMs: 100 } };

test("I6 no contagion: a slow download lets waiting ones go first, and resumes later", async () => {
  const { simulator, daemon } = await start({ faults: [DRIP] });
  await expect.poll(() => daemon.stateOf("quick")).toBe("delivered");
  expect(daemon.changes.filter(({ reason }) => reason === "slow")).not.toEqual([]);
  expect(daemon.stateOf("slow")).not.toBe("delivered");
  simulator.clearFaults();
  await expect.poll(() => daemon.stateOf("slow")).toBe("delivered");
  expect(simulator.requests().some(({ status, transfer }) => status === 206 && transfer === "slow")).toBe(
    true,
  );
});

test.each([
  { why: "nothing waits", trackingIds: ["slow"] },
  { why: "it expires soon", expiresInSeconds: DAY_SECONDS / 2 },
  {
    why: "the service could not go on where it was",
    faults: [{ ...SLOW, does: { kind: "omit", headers: ["accept-ranges"] } } as const, DRIP],
  },
])("a slow download keeps its slot where $why", async ({ why: _, ...world }) => {
  const { simulator, daemon } = await start({ faults: [DRIP], ...world });
  await expect.poll(() => simulator.totals().file).toBe(1);
  await setTimeout(1_500);
  expect(daemon.changes.filter(({ reason }) => reason === "slow")).toEqual([]);
  expect(daemon.stateOf("slow")).toBe("downloading");
});

interface World {
  readonly faults: readonly FaultPlan[];
  readonly trackingIds?: readonly string[];
  readonly expiresInSeconds?: number;
}

/** The slow transfer has the only slot, because it expires first. */
async function start({ faults, trackingIds = ["slow", "quick"], expiresInSeconds = 3 * DAY_SECONDS }: World) {
  const { simulator, settings } = await openMailbox(
    {},
    {
      transfers: trackingIds.map((trackingId, at) =>
        transferPlan({
          trackingId,
          expiresInSeconds: expiresInSeconds + at * DAY_SECONDS,
          files: [{ name: `${trackingId}.bin`, generate: { bytes: 100_000 } }],
        }),
      ),
    },
  );
  for (const fault of faults) simulator.addFault(fault);
  const limits = { ...settings.limits, transfers: 1 };
  return { simulator, daemon: startDaemon({ ...settings, limits }, { slowMs: 300, graceMs: 0 }) };
}
