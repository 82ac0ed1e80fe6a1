/** Makes `fs.watch` fail in this process until the end of the test, as without inotify watches left. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { onTestFinished } from "vitest";

export function useUpWatches(code: "ENOSPC" | "EMFILE" = "ENOSPC"): void {
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
