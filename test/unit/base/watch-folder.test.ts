import fs from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { basename, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { watchFolder } from "../../../src/base/files.ts";
import { makeFolder } from "../../support/program.ts";

test("a folder that can be watched is, without a word", async () => {
  const { folder, seen } = await setUp();
  await writeFile(join(folder, "a"), "1");
  await expect.poll(() => seen).toEqual(["add a"]);
});

describe.each(["ENOSPC", "EMFILE"] as const)("where the system refuses with %s", (code) => {
  test("it is said once, with what to do, and changes are noticed all the same", async () => {
    useUpWatches(code);
    const { folder, seen } = await setUp();
    const [said = ""] = seen;
    expect(said).toBe(
      `WATCH_REFUSED The system cannot watch this folder for changes: ${folder} (${code}) fs.inotify.max_user_watches`,
    );
    await expect
      .poll(() => seen.slice(1).toSorted())
      .toEqual(["add removed", "add there before", "other folder"]);
    await writeFile(join(folder, "a"), "1");
    await writeFile(join(folder, "there before"), "longer");
    await rm(join(folder, "removed"));
    const changes = ["add a", "change there before", "other removed"];
    await expect.poll(() => seen).toEqual(expect.arrayContaining(changes));
    expect(seen.filter((line) => line.startsWith("WATCH_REFUSED"))).toHaveLength(1);
  });
});

async function setUp() {
  const folder = join(await makeFolder(), "folder");
  await mkdir(folder);
  for (const name of ["there before", "removed"]) await writeFile(join(folder, name), "");
  const seen: string[] = [];
  const options = { ignoreInitial: true };
  const watching = await watchFolder(folder, options, {
    changed: (path, event) => void seen.push(`${event} ${basename(path)}`),
    unwatchable: ({ code, message, advice }) =>
      void seen.push(`${code} ${message} ${/fs\.inotify\.max_user_watches/.exec(advice)?.[0]}`),
  });
  onTestFinished(() => watching.close());
  await watching.ready;
  return { folder, seen };
}

/** Makes `fs.watch` fail in this process until the end of the test, as without inotify watches left. */
function useUpWatches(code: "ENOSPC" | "EMFILE"): void {
  const { watch } = fs;
  const replace = (next: typeof watch) => {
    fs.watch = next;
    syncBuiltinESMExports();
  };
  replace(() => {
    throw Object.assign(new Error(`${code}: System limit for number of file watchers reached`), { code });
  });
  onTestFinished(() => replace(watch));
}
