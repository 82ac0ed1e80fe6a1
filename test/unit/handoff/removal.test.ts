/** What is removed from the inbox does not come back: every doubt keeps it. */
import { existsSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { handoffOf } from "../../support/handoff.ts";
import { openBench } from "./bench.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const UNCOLLECTED = { keep: { uncollectedMs: 90 * DAY_MS } };
const COLLECTED = { acknowledgement: "DONE", keep: { collectedMs: 7 * DAY_MS } };

describe("a removal that the disk refused", () => {
  test("is not made up for where folders are to be kept since", async () => {
    const bench = await refused();
    bench.handoff = handoffOf({});
    await bench.look();
    await bench.look();
    expect(existsSync(bench.folder)).toBe(true);
    expect(bench.told).toEqual([]);
    expect(await bench.receipts.find(bench.key)).toMatchObject({ state: "delivered", reason: undefined });
  });

  test("is not made up for where it was acknowledged since", async () => {
    const bench = await refused();
    await writeFile(join(bench.folder, "DONE"), "");
    await bench.look();
    await bench.look();
    expect(existsSync(bench.folder)).toBe(true);
    expect(bench.told).toEqual(["t1: acknowledged"]);
    expect(await bench.receipts.find(bench.key)).toMatchObject({ state: "collected", reason: undefined });
  });

  test("is made up for where nothing has changed", async () => {
    const bench = await refused();
    await bench.look();
    expect(existsSync(bench.folder)).toBe(false);
    expect(bench.told).toEqual(["t1: removed after uncollected"]);
  });
});

test("a folder that is gone after a removal was begun was not collected by anybody", async () => {
  const bench = await refused();
  await rm(bench.folder, { recursive: true });
  await bench.look();
  expect(bench.told).toEqual(["t1: removed after uncollected"]);
  expect(await bench.receipts.find(bench.key)).toMatchObject({ state: "delivered", reason: "removed" });
});

test("a removal that was begun waits for an inbox that is not there", async () => {
  const bench = await refused();
  const isHere = { root: join(bench.root, "nowhere"), isHere: async () => false };
  const handoffs = await bench.open({ inbox: { ...isHere, removeDelivered: async () => "removed" } });
  await handoffs.finish();
  await handoffs.close();
  expect(bench.told).toEqual([]);
  await bench.look();
  expect(bench.told).toEqual(["t1: removed after uncollected"]);
});

describe("a clock that jumps a year ahead", () => {
  test.each([
    ["uncollected", UNCOLLECTED],
    ["collected", COLLECTED],
  ] as const)("and back removes no folder that is %s", async (_, task) => {
    const bench = await openBench(task);
    const folder = await bench.deliver("t1", "DONE");
    if (task === COLLECTED) await writeFile(join(folder, "DONE"), "");
    await bench.look();
    for (const jumpMs of [365 * DAY_MS, -365 * DAY_MS, 365 * DAY_MS, -364 * DAY_MS]) {
      bench.machine.jumpMs(jumpMs);
      await bench.look();
      bench.machine.passMs(10_000);
    }
    await bench.look();
    expect(existsSync(folder)).toBe(true);
  });

  test("at every look removes none, however often", async () => {
    const bench = await openBench(UNCOLLECTED);
    const folder = await bench.deliver("t1");
    for (let looks = 0; looks < 5; looks++) {
      bench.machine.jumpMs(365 * DAY_MS);
      bench.machine.passMs(2 * HOUR_MS);
      await bench.look();
    }
    expect(existsSync(folder)).toBe(true);
  });

  test("is no jump where a machine slept, or began again", async () => {
    const bench = await openBench(UNCOLLECTED);
    const folder = await bench.deliver("t1");
    bench.machine.passMs(91 * DAY_MS);
    await bench.look();
    bench.machine.upMs = 0;
    bench.machine.passMs(HOUR_MS);
    await bench.look();
    expect(existsSync(folder)).toBe(true);
    bench.machine.passMs(HOUR_MS);
    await bench.look();
    expect(existsSync(folder)).toBe(false);
  });
});

test("a folder goes at the second look that finds its time over, not sooner and not much later", async () => {
  const bench = await openBench(UNCOLLECTED);
  const folder = await bench.deliver("t1");
  bench.machine.passMs(90 * DAY_MS - 1);
  await bench.look();
  bench.machine.passMs(1);
  await bench.look();
  bench.machine.passMs(HOUR_MS - 1);
  await bench.look();
  expect(existsSync(folder)).toBe(true);
  bench.machine.passMs(1);
  await bench.look();
  expect(existsSync(folder)).toBe(false);
  expect(bench.told).toEqual(["t1: removed after uncollected"]);
});

/** Its time is over, its removal was begun, and the disk would not have it. */
async function refused() {
  const bench = await openBench({ ...UNCOLLECTED, acknowledgement: "DONE" });
  const folder = await bench.deliver("t1", "DONE");
  // With a file in the place of that folder, nothing can be moved aside.
  const staging = join(bench.work, "staging");
  await rename(staging, `${staging}.away`);
  await writeFile(staging, "");
  for (let looks = 0; looks < 2; looks++) {
    bench.machine.passMs(91 * DAY_MS);
    await bench.look();
  }
  await rm(staging);
  await rename(`${staging}.away`, staging);
  expect(bench.told.splice(0)).toEqual(["stuck: DISK_REFUSED"]);
  expect(existsSync(folder)).toBe(true);
  return Object.assign(bench, { folder, key: { mailbox: "m", trackingId: "t1" } });
}
