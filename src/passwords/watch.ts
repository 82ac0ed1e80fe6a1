/** Notices passwords that people drop, so that a waiting transfer goes on at once. */
import { basename, join } from "node:path";
import type { Fault } from "../base/faults.ts";
import { type FolderWatch, watchFolder } from "../base/watch-folder.ts";

/** `onDropped` gets the file's name, which is the tracking-id it is meant for. */
export function watchDropFolder(
  state: string,
  onDropped: (trackingId: string) => void,
  unwatchable: (fault: Fault) => void,
): Promise<FolderWatch> {
  const options = { ignoreInitial: true, depth: 1 };
  return watchFolder(join(state, "passwords"), options, {
    changed: (path, event) => void (event !== "other" && onDropped(basename(path))),
    unwatchable,
  });
}
