/** Proves that an inbox is on the mount of the work folder, by a real rename, and that it has room. */
import { mkdir, readdir, rename, rmdir, stat, statfs, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { onMachine, systemMachine } from "../../../src/base/machine.ts";
import { openInbox, openRoom } from "../../../src/inbox/inbox.ts";
import { canReach, prepareInbox } from "../../../src/inbox/reach.ts";
import { makeFolder, makeFolderElsewhere } from "../../support/program.ts";

const OLD = new Date(Date.now() - 2 * 3_600_000);

test("an inbox is created with its mode, and nothing is left in it or in the work folder", async () => {
  const { work, folder } = await setUp();
  const path = join(folder, "a", "inbox");
  for (const _ of [1, 2]) await prepareInbox({ path, mode: 0o770 }, work);
  expect((await stat(path)).mode & 0o777).toBe(0o770);
  expect([await readdir(path), await readdir(work)]).toEqual([[], []]);
});

test("an inbox is cleared of what killed probes left, but not of anything that has content", async () => {
  const { work, folder } = await setUp();
  const inbox = join(folder, "inbox");
  const named = (digit: string) => `.inlet-probe-${digit.repeat(12)}`;
  const [left, full, fresh] = [named("0"), named("1"), named("2")];
  for (const name of [left, full, fresh]) await mkdir(join(inbox, name), { recursive: true, mode: 0o700 });
  await writeFile(join(inbox, full, "ledger"), "");
  for (const name of [left, full]) await utimes(join(inbox, name), OLD, OLD);
  expect(await canReach(work, inbox, Date.now())).toBe(true);
  expect((await readdir(inbox)).toSorted()).toEqual([full, fresh]);
});

test("a mounted inbox is here while it is the folder that was first seen, on the disk of the work folder", async () => {
  const { work, folder } = await setUp();
  const [root, own] = [join(folder, "inbox"), join(folder, "own")];
  await mkdir(root);
  const inbox = await openInbox(root, join(work, "staging"), () => 0);
  await inbox.prepare([{ path: own, mode: 0o750 }]);
  expect([await inbox.isHere(), await inbox.isHere(own)]).toEqual([true, true]);
  await rename(own, `${own}-aside`);
  expect(await inbox.isHere(own)).toBe(false);
  await mkdir(own);
  expect(await inbox.isHere(own)).toBe(false);
  await rmdir(own);
  await rename(`${own}-aside`, own);
  expect(await inbox.isHere(own)).toBe(true);
  // No longer configured: it may never have been seen before.
  expect(await inbox.isHere(join(folder, "missing"))).toBe(false);
  expect(await inbox.isHere(await makeFolderElsewhere())).toBe(false);
  expect(await inbox.isHere(work)).toBe(true);
});

async function setUp() {
  const folder = await makeFolder();
  const work = join(folder, "work");
  await mkdir(work);
  return { folder, work };
}

const TERABYTE = 10 ** 12;

test("what was promised to one is not promised to another, until it is given back", async () => {
  const folder = await makeFolder();
  const { bavail, bsize } = await statfs(folder);
  const most = Math.floor(bavail * bsize * 0.8);
  const space = openRoom(folder, () => 0);
  const first = await space.reserve("a", most, 1);
  await expect(space.reserve("b", most, 1)).rejects.toThrow("reserved for others");
  expect(await space.hasRoom("b")).toBe(false);
  first.release();
  expect(await space.hasRoom("b")).toBe(true);
  (await space.reserve("b", most, 1)).release();
});

test("what must stay free is not promised; one for which there was no room is held back by what it lacks, and nobody else is", async () => {
  const folder = await makeFolder();
  const full = openRoom(folder, () => 10 ** 6 * TERABYTE);
  await expect(full.reserve("a", 1, 1)).rejects.toThrow("that stay free");
  const space = openRoom(folder, () => 0);
  await expect(space.reserve("large", 10 ** 6 * TERABYTE, 1)).rejects.toThrow("bytes are needed");
  expect(await space.hasRoom("large")).toBe(false);
  expect(await space.hasRoom("other")).toBe(true);
  space.forget("large");
  expect(await space.hasRoom("large")).toBe(true);
});

test("a disk that ran short all the same lacks what was left to write", async () => {
  const folder = await makeFolder();
  const { bavail, bsize } = await statfs(folder);
  const most = Math.floor(bavail * bsize * 0.9);
  const space = openRoom(folder, () => 0);
  const reservation = await space.reserve("a", most, 1);
  reservation.use(most - 1000);
  reservation.ranShort();
  reservation.release();
  expect(await space.hasRoom("a")).toBe(true);
});

test("files that were promised to one are not promised to another", async () => {
  const folder = await makeFolder();
  const files = { ...systemMachine.files, statfs: (async () => FEW_FILES) as never };
  await onMachine({ ...systemMachine, files }, async () => {
    const space = openRoom(folder, () => 0);
    const first = await space.reserve("a", 1, 60);
    await expect(space.reserve("b", 1, 60)).rejects.toThrow("more files fit (inodes)");
    first.release();
    first.release();
    await space.reserve("b", 1, 60);
    await expect(space.reserve("c", 1, 60)).rejects.toThrow("more files fit (inodes)");
  });
});

const FEW_FILES = { bsize: 4096, bavail: 1e6, files: 100, ffree: 100 };
