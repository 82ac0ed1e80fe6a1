/** Proves that an inbox is on the mount of the work folder, by a real rename. */
import { mkdir, readdir, rename, rmdir, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openInbox } from "../../../src/inbox/inbox.ts";
import { canReach, prepareInbox } from "../../../src/inbox/reach.ts";
import { makeFolder, makeFolderElsewhere } from "../../support/program.ts";

const OLD = new Date(Date.now() - 2 * 3_600_000);

describe("an inbox", () => {
  test("is created with its mode, and nothing is left in it or in the work folder", async () => {
    const { work, folder } = await setUp();
    const path = join(folder, "a", "inbox");
    for (const _ of [1, 2]) await prepareInbox({ path, mode: 0o770 }, work);
    expect((await stat(path)).mode & 0o777).toBe(0o770);
    expect([await readdir(path), await readdir(work)]).toEqual([[], []]);
  });

  test("is cleared of what killed probes left, but not of anything that has content", async () => {
    const { work, folder } = await setUp();
    const inbox = join(folder, "inbox");
    const [left, full, fresh] = ["0", "1", "2"].map((digit) => `.inlet-probe-${digit.repeat(12)}`) as [
      string,
      string,
      string,
    ];
    for (const name of [left, full, fresh]) await mkdir(join(inbox, name), { recursive: true, mode: 0o700 });
    await writeFile(join(inbox, full, "ledger"), "");
    for (const name of [left, full]) await utimes(join(inbox, name), OLD, OLD);
    expect(await canReach(work, inbox, Date.now())).toBe(true);
    expect((await readdir(inbox)).toSorted()).toEqual([full, fresh]);
  });
});

describe("a mounted inbox", () => {
  test("is here while it is the folder that was first seen, on the disk of the work folder", async () => {
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
});

async function setUp() {
  const folder = await makeFolder();
  const work = join(folder, "work");
  await mkdir(work);
  return { folder, work };
}
