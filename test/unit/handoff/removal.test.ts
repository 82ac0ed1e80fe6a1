/** A removed folder does not come back: every doubt keeps it. */
import { existsSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeHandoff } from "../../support/handoff.ts";
import { openBench } from "./bench.ts";

type Bench = Awaited<ReturnType<typeof openBench>>;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const NOT_PICKED_UP = { keep: { notPickedUpMs: 90 * DAY_MS } };
const PICKED_UP = { acknowledgement: "DONE", keep: { pickedUpMs: 7 * DAY_MS } };

test("a removal that the disk refused is not repeated where folders are to be kept now", async () => {
  const bench = await refused();
  bench.handoff = makeHandoff({});
  await bench.scan();
  await bench.scan();
  expect(existsSync(bench.folder)).toBe(true);
  expect(bench.told).toEqual([]);
  expect(await bench.files()).toEqual(["t1~1.wait"]);
});

test("a removal that the disk refused is not repeated where the folder was acknowledged since", async () => {
  const bench = await refused();
  await writeFile(join(bench.folder, "DONE"), "");
  await bench.scan();
  await bench.scan();
  expect(existsSync(bench.folder)).toBe(true);
  expect(bench.told).toEqual(["t1: acknowledged"]);
  const finished = await bench.finished(bench.record);
  expect(finished).toMatchObject({ pickedUpAt: expect.any(String), how: "acknowledged" });
  expect(finished.removedAt).toBeUndefined();
});

test("a removal that has begun waits while the inbox is not mounted", async () => {
  const bench = await refused();
  const root = join(bench.root, "nowhere");
  await bench.scan({ inbox: { root, isHere: async () => false, removeDelivered: async () => "removed" } });
  expect(bench.told).toEqual([]);
  await bench.scan();
  expect(bench.told).toEqual(["t1: removed not-picked-up"]);
});

test.each([
  ["not picked up", NOT_PICKED_UP],
  ["picked up", PICKED_UP],
] as const)("a clock that jumps a year ahead and back removes no folder that is %s", async (_, task) => {
  const bench = await openBench(task);
  const { folder } = await bench.deliver("t1", { acknowledgement: "DONE" });
  if (task === PICKED_UP) await writeFile(join(folder, "DONE"), "");
  await bench.scan();
  for (const jumpMs of [365 * DAY_MS, -365 * DAY_MS, 365 * DAY_MS, -364 * DAY_MS]) {
    bench.machine.jumpMs(jumpMs);
    await bench.scan();
    bench.machine.passMs(10_000);
  }
  await bench.scan();
  expect(existsSync(folder)).toBe(true);
});

test.each([
  ["not picked up", NOT_PICKED_UP],
  ["picked up", PICKED_UP],
] as const)(
  "a folder that was %s while the clock was years behind is kept from when it is right again",
  async (_, task) => {
    const bench = await openBench(task);
    bench.machine.jumpMs(-3_650 * DAY_MS);
    bench.isClockRight = false;
    const at = { delivered: new Date(bench.machine.nowMs).toISOString() };
    const { folder } = await bench.deliver("t1", { acknowledgement: "DONE", at });
    if (task === PICKED_UP) await writeFile(join(folder, "DONE"), "");
    await bench.scan();
    bench.machine.jumpMs(3_650 * DAY_MS);
    bench.isClockRight = true;
    const keepMs = task === PICKED_UP ? PICKED_UP.keep.pickedUpMs : NOT_PICKED_UP.keep.notPickedUpMs;
    await bench.scan();
    await scanAfter(bench, keepMs - 1);
    await scanAfter(bench, DAY_MS);
    expect(existsSync(folder)).toBe(true);
    await scanAfter(bench, DAY_MS);
    expect(existsSync(folder)).toBe(false);
  },
);

test("a clock that jumps a year ahead at every scan removes none, however often", async () => {
  const bench = await openBench(NOT_PICKED_UP);
  const { folder } = await bench.deliver("t1");
  for (let scans = 0; scans < 5; scans++) {
    bench.machine.jumpMs(365 * DAY_MS);
    await scanAfter(bench, 2 * HOUR_MS);
  }
  expect(existsSync(folder)).toBe(true);
});

test("a clock that jumps a year ahead is no jump where the machine was started again", async () => {
  const bench = await openBench(NOT_PICKED_UP);
  const { folder } = await bench.deliver("t1");
  await scanAfter(bench, 91 * DAY_MS);
  bench.machine.upMs = 0;
  await scanAfter(bench, HOUR_MS);
  expect(existsSync(folder)).toBe(true);
  await scanAfter(bench, HOUR_MS);
  expect(existsSync(folder)).toBe(false);
});

test("a folder is removed by the second scan that finds its time over, not sooner and not much later", async () => {
  const bench = await openBench(NOT_PICKED_UP);
  const { folder } = await bench.deliver("t1");
  await scanAfter(bench, 90 * DAY_MS - 1);
  await scanAfter(bench, 1);
  await scanAfter(bench, HOUR_MS - 1);
  expect(existsSync(folder)).toBe(true);
  await scanAfter(bench, 1);
  expect(existsSync(folder)).toBe(false);
  expect(bench.told).toEqual(["t1: removed not-picked-up"]);
});

test("an acknowledged folder waits under its own name until it is removed", async () => {
  const bench = await openBench(PICKED_UP);
  const { folder, record } = await bench.deliver("t1", { acknowledgement: "DONE" });
  await writeFile(join(folder, "DONE"), "");
  await bench.scan();
  expect(await bench.files()).toEqual(["t1~1.kept"]);
  await scanAfter(bench, 8 * DAY_MS);
  await scanAfter(bench, 2 * HOUR_MS);
  expect(existsSync(folder)).toBe(false);
  expect(bench.told).toEqual(["t1: acknowledged", "t1: removed picked-up"]);
  expect(await bench.finished(record)).toMatchObject({ how: "acknowledged", removedAt: expect.any(String) });
  expect(await bench.files()).toEqual([]);
});

test("a folder that a consumer changed stays, which is reported once", async () => {
  const bench = await openBench(NOT_PICKED_UP);
  const { folder } = await bench.deliver("t1");
  await mkdir(join(folder, "own"));
  for (let scans = 0; scans < 4; scans++) {
    await scanAfter(bench, 91 * DAY_MS);
  }
  expect(bench.told).toEqual(["t1: left in place"]);
  await rm(folder, { recursive: true });
  await bench.scan();
  expect(bench.told).toEqual(["t1: left in place", "t1: taken"]);
});

test("a removal that was cut short does not touch the next delivery with the same folder", async () => {
  const bench = await refused();
  await rm(bench.folder, { recursive: true });
  const { folder } = await bench.deliver("t1", { round: 2 });
  await bench.scan();
  expect(bench.told).toEqual(["t1: removed not-picked-up"]);
  expect(existsSync(folder)).toBe(true);
  expect(await bench.files()).toEqual(["t1~2.wait"]);
});

/** A folder whose time is over, and whose removal the disk refused. */
async function refused() {
  const bench = await openBench({ ...NOT_PICKED_UP, acknowledgement: "DONE" });
  const { folder, record } = await bench.deliver("t1", { acknowledgement: "DONE" });
  // With a file in its place, no folder can be moved aside.
  const { staging } = bench;
  await rename(staging, `${staging}.away`);
  await writeFile(staging, "");
  for (let scans = 0; scans < 2; scans++) {
    await scanAfter(bench, 91 * DAY_MS);
  }
  await rm(staging);
  await rename(`${staging}.away`, staging);
  expect(bench.told.splice(0)).toContain("stuck: DISK_REFUSED");
  expect(existsSync(folder)).toBe(true);
  return Object.assign(bench, { folder, record });
}

async function scanAfter(bench: Bench, ms: number): Promise<void> {
  bench.machine.passMs(ms);
  await bench.scan();
}
