/** The sequence of operators' orders, across processes, pauses and crashes. */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { ORDER_BYTES } from "../../../src/base/bounds.ts";
import { onMachine, systemMachine } from "../../../src/base/machine.ts";
import { closeOrder, giveOrder, listOrders } from "../../../src/ledger/orders.ts";
import type { Action } from "../../../src/model/order.ts";
import { makeFolder, runCommand } from "../../support/program.ts";
import { OPERATOR } from "../../support/settings.ts";

const KEY = { mailbox: "m", round: 1, by: OPERATOR } as const;

function give(work: string, trackingId: string, action: Action = "retry") {
  return giveOrder(work, { ...KEY, trackingId, action });
}

async function idsIn(work: string): Promise<unknown[]> {
  return (await listOrders(work)).map(({ order }) => order.trackingId);
}

test("each of many orders that are given at once has a number of its own, and a later one is later", async () => {
  const work = await makeFolder();
  const given = await Promise.all(Array.from({ length: 20 }, (_, at) => give(work, `t${at}`)));
  expect(new Set(given.map(({ number }) => number)).size).toBe(20);
  const last = await give(work, "last");
  expect(last.number).toBeGreaterThan(Math.max(...given.map(({ number }) => number)));
  const listed = await listOrders(work);
  expect(listed.map(({ number }) => number)).toEqual(
    listed.map(({ number }) => number).toSorted((a, b) => a - b),
  );
  expect(listed).toHaveLength(21);
});

test("no number is used twice, whichever orders are over", async () => {
  const work = await makeFolder();
  const [first, second] = [await give(work, "a"), await give(work, "b")];
  await closeOrder(second);
  const third = await give(work, "c");
  await closeOrder(first);
  await closeOrder(third);
  // Another process that carried it out as well.
  await closeOrder(third);
  const fourth = await give(work, "d");
  await closeOrder(second);
  expect([first, second, third, fourth].map(({ number }) => number - first.number)).toEqual([0, 1, 2, 3]);
  expect(await idsIn(work)).toEqual(["d"]);
  await closeOrder(fourth);
  expect(await readdir(join(work, "orders"))).toEqual([`${fourth.number}.over`]);
});

test("a process that paused before it took a number takes another one, if that was used meanwhile", async () => {
  const work = await makeFolder();
  const first = await give(work, "a");
  const { files } = systemMachine;
  let isPaused = true;
  const readdirThen = async (path: string) => {
    const names = await files.readdir(path);
    if (!isPaused) return names;
    isPaused = false;
    return onMachine(systemMachine, async () => {
      for (const id of ["b", "c"]) await closeOrder(await give(work, id));
      return names;
    });
  };
  // The folder of another process: it lists the names as they were before the pause.
  const paused = { ...systemMachine, files: { ...files, readdir: readdirThen as typeof files.readdir } };
  await mkdir(join(work, "orders"), { recursive: true });
  const late = await onMachine(paused, () => give(work, "late"));
  expect(late.number - first.number).toBe(3);
  expect(await idsIn(work)).toEqual(["a", "late"]);
});

test("a lost folder does not lead to a number that a record names already", async () => {
  const work = await makeFolder();
  const before = await give(work, "a");
  await rm(join(work, "orders"), { recursive: true });
  expect((await give(work, "b")).number).toBeGreaterThanOrEqual(before.number);
});

test("orders of an earlier version come first, in the order of their time, whatever their names", async () => {
  const work = await makeFolder();
  const folder = join(work, "orders");
  await mkdir(folder);
  const times = ["2026-03-01T08:00:00.000Z", "2026-03-01T08:00:01.000Z", "2026-03-01T08:00:02.000Z"];
  for (const [at, id] of ["f", "0", "a"].entries()) {
    const text = JSON.stringify({ ...KEY, trackingId: id, action: "retry", at: times[at] });
    await writeFile(join(folder, `t.0123456789abcdef~${id.repeat(16)}.json`), `${text}\n`);
  }
  expect(await idsIn(work)).toEqual(["f", "0", "a"]);
  await give(work, "new");
  expect(await idsIn(work)).toEqual(["f", "0", "a", "new"]);
  expect((await listOrders(work)).map(({ order: { at } }) => at).slice(0, 3)).toEqual(times);
  expect((await readdir(folder)).filter((name) => name.includes("~"))).toEqual([]);
});

test("files that are no orders, and damaged ones, are ignored", async () => {
  const work = await makeFolder();
  await give(work, "a");
  for (const name of ["99999999999999999999.json", "x.json", ".0123456789ab.part"])
    await writeFile(join(work, "orders", name), "?");
  expect((await give(work, "b")).number).toBeLessThan(1e15);
  expect(await idsIn(work)).toEqual(["a", "b"]);
});

test("a file that is too large to be an order is not read, nor a pipe without a writer", async () => {
  const work = await makeFolder();
  const { path } = await give(work, "first");
  const large = join(dirname(path), "100.json");
  await writeFile(large, `${await readFile(path, "utf8")}${" ".repeat(ORDER_BYTES)}`);
  await runCommand("mkfifo", [join(dirname(path), "101.json")]);
  expect(await idsIn(work)).toEqual(["first"]);
  expect((await give(work, "later")).number).toBeGreaterThan(101);
});
