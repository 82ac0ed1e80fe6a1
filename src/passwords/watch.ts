/** Notices passwords that people drop, so that a waiting transfer goes on at once. */
import { basename, join } from "node:path";

/** `onDropped` hears the file's name, which is the tracking-id it is meant for. */
export async function watchDropFolder(
  state: string,
  onDropped: (trackingId: string) => void,
): Promise<{ close(): Promise<void> }> {
  const { watch: watchFolder } = await import("chokidar");
  const watcher = watchFolder(join(state, "passwords"), { depth: 1, ignoreInitial: true });
  const report = (path: string) => onDropped(basename(path));
  watcher.on("add", report).on("change", report);
  // Polls look into the folder too: without a watcher it only takes longer.
  watcher.on("error", () => {});
  return watcher;
}
