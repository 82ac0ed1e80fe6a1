/** The files of the outbox: what creates, changes and ends them, what a power cut cannot take away, and their summary. */

import { writeFileSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Disk, systemDisk } from "../../../src/base/disk.ts";
import { deliveryOf } from "../../../src/handoff/delivery.ts";
import { newEntry } from "../../../src/handoff/entry.ts";
import { listEntries, Outbox } from "../../../src/handoff/outbox.ts";
import { peekHandoffs, peekSteps, Summary } from "../../../src/handoff/peek.ts";
import { EMPTY_ENTRY, type Entry, formatEntry, outboxIn } from "../../../src/model/outbox.ts";
import { makeHandoff } from "../../support/handoff.ts";
import { makeFolder } from "../../support/program.ts";
import { recordOf } from "./bench.ts";

const KEY = "t1.ab~1";
const NEW = newEntry(["command"]);
const DONE: Entry = { ...NEW, command: { state: "done", attempts: 1 } };

describe("a new entry", () => {
  test("that only serves to notice a pick-up is an empty file, made by one call and never synced", async () => {
    const { outbox, calls, files } = await prepare();
    await outbox.create(KEY, EMPTY_ENTRY, false);
    await outbox.create(KEY, EMPTY_ENTRY, false);
    expect(calls).toEqual(["create t1.ab~1.wait", "close", "create t1.ab~1.wait"]);
    expect(await files()).toEqual(["t1.ab~1.wait"]);
    expect(await outbox.find(KEY)).toEqual({ entry: EMPTY_ENTRY, kind: "wait" });
  });

  test.each(["json", "wait", "kept"] as const)(
    "does not replace one that exists as %s, but waits until that is durable",
    async (kind) => {
      const { work, outbox, calls, files } = await prepare();
      await writeFile(join(outboxIn(work), `${KEY}.${kind}`), formatEntry(DONE));
      await outbox.create(KEY, NEW, true);
      expect(calls).toEqual(["sync folder"]);
      expect(await files()).toEqual([`${KEY}.${kind}`]);
      expect(await outbox.find(KEY)).toEqual({ entry: DONE, kind });
    },
  );

  test("shares the sync of its folder with others", async () => {
    const { outbox, calls } = await prepare();
    await Promise.all(Array.from({ length: 20 }, (_, at) => outbox.create(`t${at}.ab~1`, NEW, true)));
    expect(calls.filter((call) => call === "sync folder").length).toBeLessThan(20);
  });

  test("gets its name without hard links too", async () => {
    const link = () => Promise.reject(Object.assign(new Error("no links"), { code: "EPERM" }));
    const { outbox, files } = await prepare({ link });
    await outbox.create(KEY, NEW, true);
    await outbox.create(KEY, DONE, true);
    expect(await files()).toEqual(["t1.ab~1.json"]);
    expect(await outbox.find(KEY)).toEqual({ entry: NEW, kind: "json" });
  });
});

test("a changed entry gets the name of its kind", async () => {
  const { outbox, files } = await prepare();
  await outbox.create(KEY, NEW, true);
  await outbox.save(KEY, await change(outbox), DONE, "wait");
  expect(await files()).toEqual(["t1.ab~1.wait"]);
  expect(await outbox.find(KEY)).toEqual({ entry: DONE, kind: "wait" });
});

test("a changed entry is not written again where only its name changes", async () => {
  const { outbox, calls } = await prepare();
  await outbox.create(KEY, EMPTY_ENTRY, true);
  calls.splice(0);
  await outbox.save(KEY, await change(outbox), EMPTY_ENTRY, "wait");
  expect(calls).toEqual([]);
});

test("a file of a late worker gives way to an entry whose steps are done", async () => {
  const { work, outbox, files } = await prepare();
  await writeFile(join(outboxIn(work), `${KEY}.wait`), formatEntry(DONE));
  await writeFile(join(outboxIn(work), `${KEY}.json`), formatEntry(NEW));
  expect(await change(outbox)).toEqual({ entry: DONE, kind: "wait" });
  expect(await files()).toEqual(["t1.ab~1.wait"]);
});

test("a file of a late worker that is empty gives way to an entry with steps, and any is dropped where the entry was finished", async () => {
  const { outbox, files } = await prepare();
  await outbox.create(KEY, NEW, true);
  await outbox.create(KEY, EMPTY_ENTRY, false);
  const entry = await change(outbox);
  expect(entry).toEqual({ entry: NEW, kind: "json" });
  expect(await files()).toEqual(["t1.ab~1.json"]);
  await outbox.finish(KEY, entry, DONE);
  expect(await files()).toEqual([]);
  expect(await outbox.isFinished(KEY)).toBe(true);
  await outbox.create(KEY, NEW, true);
  expect(await outbox.change(KEY, () => outbox.take(KEY))).toBeUndefined();
  expect(await files()).toEqual([]);
});

test("a damaged file is reported and left in place; other files are ignored", async () => {
  const { work, outbox, damaged, files } = await prepare();
  await writeFile(join(outboxIn(work), "bad.ab~1.json"), "{");
  await writeFile(join(outboxIn(work), "empty.ab~1.json"), "");
  await writeFile(join(outboxIn(work), "notes.txt"), "of an operator");
  expect(await outbox.change("bad.ab~1", () => outbox.take("bad.ab~1"))).toBeUndefined();
  expect(await outbox.find("empty.ab~1")).toBeUndefined();
  expect(damaged).toEqual(["bad.ab~1.json", "empty.ab~1.json"].map((name) => join(outboxIn(work), name)));
  const found = await Array.fromAsync(listEntries(work));
  expect(found.map(({ key }) => key).toSorted()).toEqual(["bad.ab~1", "empty.ab~1"]);
  expect(await files()).toEqual(["bad.ab~1.json", "empty.ab~1.json"]);
});

test("steps of all rounds of a transfer are found without a daemon", async () => {
  const { work, outbox } = await prepare();
  expect(await peekSteps(join(work, "nowhere"), "t1.ab", 1, 2)).toEqual([]);
  await outbox.create("t1.ab~1", NEW, true);
  await outbox.create("t1.ab~2", DONE, true);
  await outbox.create("t2.ab~1", EMPTY_ENTRY, false);
  const stepsOf = async (name: string, first: number) =>
    (await peekSteps(work, name, first, 2)).map(({ step, state }) => `${step} ${state}`);
  expect(await stepsOf("t1.ab", 1)).toEqual(["command pending", "command done"]);
  expect(await stepsOf("t1.ab", 2)).toEqual(["command done"]);
  expect(await stepsOf("t2.ab", 1)).toEqual([]);
});

/** An outbox on a real disk, with the steps that change something. */
async function prepare(over: Partial<Disk> = {}) {
  const work = await makeFolder();
  const [damaged, calls]: [string[], string[]] = [[], []];
  const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
  const logged = <Result>(call: string, run: () => Promise<Result>) => {
    calls.push(call);
    return run();
  };
  const disk: Disk = {
    ...systemDisk,
    async create(path, mode) {
      const file = await logged(`create ${nameOf(path)}`, () => systemDisk.create(path, mode));
      return {
        ...file,
        sync: () => logged("sync", () => file.sync()),
        close: () => logged("close", () => file.close()),
      };
    },
    link: (from, to) => logged(`link ${nameOf(to)}`, () => systemDisk.link(from, to)),
    rename: (from, to) => logged(`rename ${nameOf(to)}`, () => systemDisk.rename(from, to)),
    unlink: (path) => logged("unlink", () => systemDisk.unlink(path)),
    syncFolder: (path) => logged("sync folder", () => systemDisk.syncFolder(path)),
    ...over,
  };
  const outbox = new Outbox({
    work,
    isAlone: true,
    disk,
    finishedPath: (name, round) => join(work, "finished", `${name}-${round}`),
    onDamaged: (path) => damaged.push(path),
  });
  await mkdir(join(work, "finished"));
  await outbox.open(0);
  const files = async () => (await readdir(outboxIn(work))).filter((name) => name.includes("~")).toSorted();
  return { work, outbox, damaged, calls, files };
}

async function change(outbox: Outbox) {
  const stored = await outbox.change(KEY, () => outbox.take(KEY));
  if (stored === undefined) throw new Error("no entry");
  return stored;
}

const WAITING = 10_000;
const HANDOFF = () => makeHandoff({ command: ["true"] });
const FAILED = { command: { state: "failed", attempts: 9, error: "no" } } as const;

test("folders that wait are counted without reading anything of them", async () => {
  const work = await prepareWork();
  for (let at = 0; at < WAITING; at++) {
    writeFileSync(join(outboxIn(work), `t${at}.ab~1.wait`), "not to be read");
  }
  const readEnd = () => Promise.reject(new Error("not to be read"));
  expect(await peekHandoffs(work, HANDOFF, readEnd)).toMatchObject({
    waiting: WAITING,
    oldestMs: undefined,
    troubled: 0,
    troubles: [],
  });
});

test("failed and overdue deliveries are listed", async () => {
  const work = await prepareWork({
    "t1.ab~1.json": FAILED,
    "t2.ab~1.json": { reported: true },
    "t3.ab~1.json": { ...FAILED, pickedUpAt: "2026-03-01T09:00:00.000Z" },
    "t4.ab~1.json": { command: { state: "pending", attempts: 0 } },
    "open.ab~1.json": FAILED,
    "t6.ab~1.kept": { pickedUpAt: "2026-03-01T09:00:00.000Z" },
  });
  await writeFile(join(outboxIn(work), "bad.ab~1.json"), "{");
  const readEnd = async (name: string, round: number) =>
    name === "open.ab" ? undefined : recordOf(name.replace(".ab", ""), { round, steps: ["command"] });
  const summary = await peekHandoffs(work, HANDOFF, readEnd);
  expect(summary).toMatchObject({
    waiting: 3,
    oldestMs: Date.parse("2026-03-01T08:00:00.000Z"),
    troubled: 3,
  });
  const troubles = summary.troubles.map(
    ({ trackingId, folder, failed, isOverdue }) => `${trackingId} ${folder} ${failed.length} ${isOverdue}`,
  );
  expect(troubles.toSorted()).toEqual(["t1 m/t1 1 false", "t2 m/t2 0 true", "t3 m/t3 1 false"]);
  expect(troubles.at(-1)).toBe("t2 m/t2 0 true");
});

async function prepareWork(entries: Readonly<Record<string, Partial<Entry>>> = {}): Promise<string> {
  const work = await makeFolder();
  await mkdir(outboxIn(work), { recursive: true });
  for (const [name, facts] of Object.entries(entries)) {
    await writeFile(join(outboxIn(work), name), formatEntry({ ...EMPTY_ENTRY, ...facts }));
  }
  return work;
}

test("I8 bounded: a change of a delivery replaces what is known of it, and further troubles are only counted", () => {
  const summary = new Summary({ handoffOf: HANDOFF });
  const delivery = deliveryOf("t1.ab~1", recordOf("t1", { steps: ["command"] }));
  const failed = { ...EMPTY_ENTRY, ...FAILED } as const;
  for (let at = 0; at < 700; at++) summary.add(`t${at}.ab~1`, failed, delivery);
  expect([summary.troubles.length, summary.troubled, summary.failing]).toEqual([500, 700, 700]);
  summary.note("t1.ab~1", { ...EMPTY_ENTRY, command: { state: "done", attempts: 2 } }, delivery);
  summary.note("t2.ab~1", failed, delivery);
  expect([summary.troubles.length, summary.troubled, summary.failing]).toEqual([499, 699, 699]);
});
