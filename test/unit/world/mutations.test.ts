/** The mutations that worlds have to find: each breaks one promise of the program as it is now. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { ROOT } from "../../support/root.ts";
import { applyPatch, listMutations, type Mutation } from "../../world/mutants.ts";

const MUTATIONS = await listMutations();
const [first] = MUTATIONS as [Mutation, ...Mutation[]];

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "inlet-mutations-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test("there are at least forty, numbered from 01", () => {
  expect(MUTATIONS.length).toBeGreaterThanOrEqual(40);
  const numbers = MUTATIONS.map((_, at) => `${at + 1}`.padStart(2, "0"));
  expect(MUTATIONS.map(({ number }) => number)).toEqual(numbers);
});

test.each(MUTATIONS)("$name says which promise it breaks, and applies", async ({ path, description }) => {
  expect(description).toMatch(/^[A-Z].{50,}\.$/);
  await applyPatch(ROOT, path, "check");
  const files = (await readFile(path, "utf8")).match(/^\+\+\+ .*$/gm) ?? [];
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) expect(file).toMatch(/^\+\+\+ b\/src\/.+\.ts$/);
});

test("a patch of a tree that has changed since is refused", async () => {
  const changed = join(await makeFolder(), "changed.patch");
  const text = await readFile(first.path, "utf8");
  await writeFile(changed, text.replace(/^ (.*\w.*)$/m, " $1 // changed"));
  await expect(applyPatch(ROOT, changed, "check")).rejects.toThrow("patch does not apply");
});

test.each(["a copy", "a copy in another repository"])("a patch changes %s of the tree", async (where) => {
  const outer = await makeFolder();
  if (where !== "a copy") await promisify(execFile)("git", ["init", "--quiet"], { cwd: outer });
  const folder = join(outer, "tree");
  await cp(join(ROOT, "src"), join(folder, "src"), { recursive: true });
  const [, file = ""] = /^\+\+\+ b\/(.+)$/m.exec(await readFile(first.path, "utf8")) ?? [];
  const before = await readFile(join(folder, file), "utf8");

  await applyPatch(folder, first.path);

  expect(await readFile(join(folder, file), "utf8")).not.toBe(before);
  // It does not apply twice.
  await expect(applyPatch(folder, first.path)).rejects.toThrow("patch does not apply");
});
