/** Notices passwords that people drop, so that a waiting transfer goes on at once. */
import { basename, join } from "node:path";
import { watch as watchFolder } from "chokidar";

/** `onDropped` hears the file's name, which is the tracking-id it is meant for. */
export function watchDropFolder(
  state: string,
  onDropped: (trackingId: string) => void,
): { close(): Promise<void> } {
  const watcher = watchFolder(join(state, "passwords"), { depth: 0, ignoreInitial: true });
  const report = (path: string) => onDropped(basename(path));
  watcher.on("add", report).on("change", report);
  // Polls look into the folder too: without a watcher it only takes longer.
  watcher.on("error", () => {});
  return watcher;
}
