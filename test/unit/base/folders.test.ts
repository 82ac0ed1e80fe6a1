import { readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeFolderDurably } from "../../../src/base/durable.ts";
import { makeFolder } from "../../support/program.ts";

describe("a folder", () => {
  test("is made with all those above it, and may be there", async () => {
    const root = await makeFolder();
    await makeFolderDurably(join(root, "a/b/c"), 0o700);
    await makeFolderDurably(join(root, "a/b/c"), 0o700);
    expect(await readdir(root, { recursive: true })).toEqual(["a", "a/b", "a/b/c"]);
  });

  test.each([
    ["a link that leads nowhere", (path: string) => symlink("nowhere", path), "ENOENT"],
    ["a file", (path: string) => writeFile(path, ""), "ENOTDIR"],
  ])("below %s cannot be made, and that is said", async (_, make, code) => {
    const root = await makeFolder();
    await make(join(root, "a"));
    await expect(makeFolderDurably(join(root, "a/b/c"), 0o700)).rejects.toMatchObject({
      code: "DISK_REFUSED",
      message: expect.stringContaining(`(${code})`),
    });
  });
});
