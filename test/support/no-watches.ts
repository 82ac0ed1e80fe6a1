/** A system without inotify watches left, for this process until the test is over. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { onTestFinished } from "vitest";

export function useUpWatches(code: "ENOSPC" | "EMFILE" = "ENOSPC"): void {
  const { watch } = fs;
  const become = (next: typeof watch) => {
    fs.watch = next;
    syncBuiltinESMExports();
  };
  become(() => {
    throw Object.assign(new Error(`${code}: System limit for number of file watchers reached`), { code });
  });
  onTestFinished(() => become(watch));
}
