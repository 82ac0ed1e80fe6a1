/** I1 whole or nothing: two who work on one transfer never write into the same file. */
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { joinMembers } from "../../../src/inbox/members.ts";
import { Staging } from "../../../src/inbox/staging.ts";
import { makeFolder } from "../../support/program.ts";

test("what one that is gone has left is taken over", async () => {
  const { work, root } = await setUp();
  const first = await enter(work);
  const stage = await new Staging(root, first).take("k", 1, false);
  await writeFile(join(stage.folder, "part"), "half");
  await first.leave();
  const second = await enter(work);
  const taken = await new Staging(root, second).take("k", 2, false);
  expect(await readFile(join(taken.folder, "part"), "utf8")).toBe("half");
  expect(await readdir(join(root, "k"))).toEqual([`2-${second.self}`]);
});

test("what one that still lives has begun is left to it, and it finds nothing of the other's", async () => {
  const { work, root } = await setUp();
  const [first, second] = [await enter(work), await enter(work)];
  const stage = await new Staging(root, first).take("k", 1, false);
  await writeFile(join(stage.folder, "part"), "half");
  const other = await new Staging(root, second).take("k", 2, false);
  expect(await readdir(other.folder)).toEqual([]);
  expect(await readFile(join(stage.folder, "part"), "utf8")).toBe("half");
});

test("what one that still lives has finished is taken from it: only one can deliver it", async () => {
  const { work, root } = await setUp();
  const [first, second] = [await enter(work), await enter(work)];
  const stage = await new Staging(root, first).take("k", 1, false);
  await mkdir(join(stage.folder, "content"));
  const taken = await new Staging(root, second).take("k", 2, true);
  expect(await readdir(taken.folder)).toEqual(["content"]);
  await expect(rename(join(stage.folder, "content"), join(root, "delivered"))).rejects.toThrow("ENOENT");
});

test("of a finished one, an older attempt that was given up is never taken for the content", async () => {
  const { work, root } = await setUp();
  const [first, second, third] = [await enter(work), await enter(work), await enter(work)];
  await mkdir(join((await new Staging(root, first).take("k", 1, false)).folder, "content"));
  const stage = await new Staging(root, second).take("k", 2, false);
  await mkdir(join(stage.folder, "content"));
  await rename(join(stage.folder, "content"), join(root, "delivered"));
  const taken = await new Staging(root, third).take("k", 3, true);
  expect(await readdir(taken.folder)).toEqual([]);
});

test("our own earlier turn is taken over when it is over, and not while it runs", async () => {
  const { work, root } = await setUp();
  const staging = new Staging(root, await enter(work));
  const first = await staging.take("k", 1, false);
  await writeFile(join(first.folder, "part"), "half");
  const second = await staging.take("k", 2, false);
  expect(await readdir(second.folder)).toEqual([]);
  for (const stage of [first, second]) stage.release();
  await writeFile(join(second.folder, "part"), "more");
  const third = await staging.take("k", 3, false);
  expect(await readFile(join(third.folder, "part"), "utf8")).toBe("more");
  expect(await readdir(join(root, "k"))).toHaveLength(1);
});

test("who settles a transfer clears what it and those before it have, and nothing of a later claim", async () => {
  const { work, root } = await setUp();
  const [first, second, third] = [await enter(work), await enter(work), await enter(work)];
  await new Staging(root, first).take("k", 1, false);
  const stage = await new Staging(root, second).take("k", 2, false);
  await stage.clear();
  expect(await readdir(root)).toEqual([]);
  const earlier = await new Staging(root, second).take("k", 3, false);
  const later = await new Staging(root, third).take("k", 4, false);
  await earlier.clear();
  expect(await readdir(join(root, "k"))).toEqual([`4-${third.self}`]);
  await later.clear();
  expect(await readdir(root)).toEqual([]);
});

test("who is stopped is not gone; who has ended is", async () => {
  const { work } = await setUp();
  const [first, second] = [await enter(work), await enter(work)];
  expect(await second.isGone(first.self)).toBe(false);
  expect(await first.isGone(first.self)).toBe(false);
  await first.leave();
  expect(await second.isGone(first.self)).toBe(true);
  expect(await second.isGone("0123456789abcdef")).toBe(true);
});

async function setUp(): Promise<{ work: string; root: string }> {
  const work = await makeFolder();
  const root = join(work, "staging");
  await mkdir(root);
  return { work, root };
}

async function enter(work: string) {
  const members = await joinMembers(work, "");
  onTestFinished(() => members.leave());
  return members;
}
