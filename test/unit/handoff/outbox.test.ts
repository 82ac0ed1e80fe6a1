/** The files of the outbox: what creates, changes and ends them, and what a power cut cannot take away. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Disk, systemDisk } from "../../../src/base/disk.ts";
import { newEntry } from "../../../src/handoff/entry.ts";
import { listEntries, Outbox } from "../../../src/handoff/outbox.ts";
import { peekSteps } from "../../../src/handoff/peek.ts";
import { EMPTY_ENTRY, type Entry, formatEntry, outboxIn } from "../../../src/model/outbox.ts";
import { makeFolder } from "../../support/program.ts";

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

  test("with steps is synced before it has its name, and its folder after", async () => {
    const { outbox, calls, files } = await prepare();
    await outbox.create(KEY, NEW, true);
    expect(calls.filter((call) => !call.startsWith("create"))).toEqual([
      "sync",
      "close",
      "link t1.ab~1.json",
      "unlink",
      "sync folder",
    ]);
    expect(await files()).toEqual(["t1.ab~1.json"]);
  });

  test("without steps that must not be lost is an empty file, synced with its folder", async () => {
    const { outbox, calls } = await prepare();
    await outbox.create(KEY, EMPTY_ENTRY, true);
    expect(calls).toEqual(["create t1.ab~1.wait", "sync", "close", "sync folder"]);
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

describe("a changed entry", () => {
  test("is synced, and then gets the name of its kind", async () => {
    const { outbox, calls, files } = await prepare();
    await outbox.create(KEY, NEW, true);
    calls.splice(0);
    const stored = await change(outbox);
    await outbox.save(KEY, stored, DONE, "wait");
    expect(calls.slice(-5)).toEqual([
      "sync",
      "close",
      "rename t1.ab~1.json",
      "sync folder",
      "rename t1.ab~1.wait",
    ]);
    expect(await files()).toEqual(["t1.ab~1.wait"]);
    expect(await outbox.find(KEY)).toEqual({ entry: DONE, kind: "wait" });
  });

  test("is not written again where only its name changes", async () => {
    const { outbox, calls } = await prepare();
    await outbox.create(KEY, EMPTY_ENTRY, true);
    calls.splice(0);
    await outbox.save(KEY, await change(outbox), EMPTY_ENTRY, "wait");
    expect(calls).toEqual([]);
  });
});

describe("a file of a late worker", () => {
  test("gives way to an entry whose steps are done", async () => {
    const { work, outbox, files } = await prepare();
    await writeFile(join(outboxIn(work), `${KEY}.wait`), formatEntry(DONE));
    await writeFile(join(outboxIn(work), `${KEY}.json`), formatEntry(NEW));
    expect(await change(outbox)).toEqual({ entry: DONE, kind: "wait" });
    expect(await files()).toEqual(["t1.ab~1.wait"]);
  });

  test("that is empty gives way to an entry with steps", async () => {
    const { outbox, files } = await prepare();
    await outbox.create(KEY, NEW, true);
    await outbox.create(KEY, EMPTY_ENTRY, false);
    expect(await change(outbox)).toEqual({ entry: NEW, kind: "json" });
    expect(await files()).toEqual(["t1.ab~1.json"]);
  });

  test("is dropped where the entry was finished", async () => {
    const { outbox, files } = await prepare();
    await outbox.create(KEY, NEW, true);
    await outbox.finish(KEY, await change(outbox), DONE);
    expect(await files()).toEqual([]);
    expect(await outbox.isFinished(KEY)).toBe(true);
    await outbox.create(KEY, NEW, true);
    expect(await outbox.change(KEY, () => outbox.take(KEY))).toBeUndefined();
    expect(await files()).toEqual([]);
  });
});

test("a finished entry moves to the ledger: its text is on the disk before it has its name, so that it is never torn", async () => {
  const { outbox, calls } = await prepare();
  await outbox.create(KEY, EMPTY_ENTRY, false);
  calls.splice(0);
  await outbox.finish(KEY, { entry: EMPTY_ENTRY, kind: "wait" }, DONE);
  const order = calls.filter((call) => /^(sync|rename)/.test(call)).map((call) => call.split(" ")[0]);
  expect(order).toEqual(["sync", "rename"]);
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
