import { readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { createDurably, makeFolderDurably, syncFile, writeFinished } from "../../../src/base/durable.ts";
import { asFault } from "../../../src/base/faults.ts";
import { makeFolder } from "../../support/program.ts";

describe("a file that is created durably", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await makeFolder();
  });

  test("has its name only when it is whole, and leaves nothing behind when writing fails", async () => {
    const failing = createDurably(join(folder, "a"), async (file) => {
      await file.write("half");
      throw new Error("broken off");
    });
    await expect(failing).rejects.toThrow("broken off");
    expect(await readdir(folder)).toEqual([]);
    await createDurably(join(folder, "a"), async (file) => {
      await file.write("half");
      expect(await readdir(folder)).not.toContain("a");
      await file.write(" and half");
    });
    expect(await readFile(join(folder, "a"), "utf8")).toBe("half and half");
    expect(await readdir(folder)).toEqual(["a"]);
  });

  test("never takes the place of another, not even of one that appeared meanwhile or leads nowhere", async () => {
    await writeFile(join(folder, "a"), "old");
    await symlink("nowhere", join(folder, "b"));
    const write = async () => {};
    await expect(createDurably(join(folder, "a"), write)).rejects.toMatchObject({ code: "TARGET_EXISTS" });
    await expect(createDurably(join(folder, "b"), write)).rejects.toMatchObject({ code: "TARGET_EXISTS" });
    const racing = createDurably(join(folder, "c"), () => writeFile(join(folder, "c"), "faster"));
    await expect(racing).rejects.toMatchObject({ code: "TARGET_EXISTS" });
    expect(await readFile(join(folder, "a"), "utf8")).toBe("old");
    expect(await readFile(join(folder, "c"), "utf8")).toBe("faster");
    expect((await readdir(folder)).toSorted()).toEqual(["a", "b", "c"]);
  });

  test("says which folder cannot be written", async () => {
    const target = join(folder, "no", "such", "folder");
    const message = `The file could not be written: ${target} (ENOENT)`;
    await expect(createDurably(target, async () => {})).rejects.toMatchObject({
      code: "DISK_REFUSED",
      message,
    });
  });
});

test("a finished file may be read-only, is synced with another mode, and is written again after an interruption", async () => {
  const path = join(await makeFolder(), "a");
  for (const text of ["first", "second"]) {
    await writeFinished(path, () => [text], 0o440);
    expect([await readFile(path, "utf8"), (await stat(path)).mode & 0o777]).toEqual([text, 0o440]);
  }
  await syncFile(path, 0o400);
  expect((await stat(path)).mode & 0o777).toBe(0o400);
});

test("a folder is made with all those above it, and may be there", async () => {
  const root = await makeFolder();
  await makeFolderDurably(join(root, "a/b/c"), 0o700);
  await makeFolderDurably(join(root, "a/b/c"), 0o700);
  expect(await readdir(root, { recursive: true })).toEqual(["a", "a/b", "a/b/c"]);
});

test.each([
  ["a link that leads nowhere", (path: string) => symlink("nowhere", path), "ENOENT"],
  ["a file", (path: string) => writeFile(path, ""), "ENOTDIR"],
])("a folder below %s cannot be made, and that is said", async (_, make, code) => {
  const root = await makeFolder();
  await make(join(root, "a"));
  expect(await makeFolderDurably(join(root, "a/b/c"), 0o700).catch(asFault)).toMatchObject({
    code: "DISK_REFUSED",
    message: expect.stringContaining(`(${code})`),
  });
});
