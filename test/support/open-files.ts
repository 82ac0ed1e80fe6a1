/** Watches calls of the files that are opened from now on, until the test ends. */
import { onTestFinished } from "vitest";
import { type OpenFile, systemFiles } from "../../src/base/system-files.ts";

export interface WatchedCalls {
  readonly count: number;
  restore(): void;
}

/** `instead`: what a call does until `restore`. */
export function watchCalls(name: "read" | "sync", instead?: () => Promise<void>): WatchedCalls {
  const { openFile } = systemFiles;
  let count = 0;
  let isOn = true;
  systemFiles.openFile = async (...args) => {
    const file = await openFile(...args);
    const call = (...inner: unknown[]) => {
      count++;
      return isOn && instead !== undefined
        ? instead()
        : (file[name] as (...inner: unknown[]) => unknown)(...inner);
    };
    return { ...file, [name]: call } as OpenFile;
  };
  const restore = () => {
    isOn = false;
    systemFiles.openFile = openFile;
  };
  onTestFinished(restore);
  return {
    get count() {
      return count;
    },
    restore,
  };
}
