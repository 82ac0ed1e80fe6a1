import { statfs } from "node:fs/promises";
import { expect, test } from "vitest";
import { openRoom } from "../../../src/inbox/inbox.ts";
import { makeFolder } from "../../support/program.ts";

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

test("one for which there was no room is held back by what it lacks, and nobody else is", async () => {
  const space = openRoom(await makeFolder(), () => 0);
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

test("what must stay free is not promised", async () => {
  const space = openRoom(await makeFolder(), () => 10 ** 6 * TERABYTE);
  await expect(space.reserve("a", 1, 1)).rejects.toThrow("that stay free");
});
