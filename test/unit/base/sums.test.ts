/** Which files have a sum, and what the sum of a folder says. */
import { createHash } from "node:crypto";
import { link, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Sum, sumFile, sumFiles, sumFolder } from "../../../src/base/sums.ts";
import { makeFolder } from "../../support/program.ts";

test("a file has the sum of its bytes, also a large or an empty one", async () => {
  const path = join(await makeFolder(), "a");
  for (const bytes of [0, 5, 256 * 1024, 700_001]) {
    const content = Buffer.alloc(bytes, "x");
    await writeFile(path, content);
    expect(await sumFile(path)).toBe(createHash("sha256").update(content).digest("hex"));
    expect(await sumFile(path, undefined, "md5")).toBe(createHash("md5").update(content).digest("hex"));
  }
});

test.each([
  ["a link", (path: string, other: string) => symlink(other, path)],
  ["a second name of another file", (path: string, other: string) => link(other, path)],
  ["a folder", (path: string) => mkdir(path)],
  ["nothing", async () => {}],
])("%s has no sum, nor has its folder", async (_, put) => {
  const [folder, elsewhere] = [await makeFolder(), await makeFolder()];
  const [path, other] = [join(folder, "a"), join(elsewhere, "other")];
  await writeFile(other, "content");
  await put(path, other);
  expect(await sumFile(path)).toBeUndefined();
  if (put.length > 0) expect(await sumFolder(folder)).toBeUndefined();
});

test("the sum of a folder is that of its files by name, and of no others", async () => {
  const folder = await makeFolder();
  const names = ["b", "a", "ä", "c d"];
  for (const name of names) await writeFile(join(folder, name), `content of ${name}`);
  const sums = new Map<string, Sum>();
  for (const name of names) sums.set(name, (await sumFile(join(folder, name))) as Sum);
  expect(await sumFolder(folder)).toBe(await sumFiles(sums));
  await writeFile(join(folder, "extra"), "");
  expect(await sumFolder(folder)).not.toBe(await sumFiles(sums));
  await rm(join(folder, "extra"));
  await rm(join(folder, "a"));
  expect(await sumFolder(folder)).not.toBe(await sumFiles(sums));
  expect(await sumFolder(join(folder, "missing"))).toBeUndefined();
});
