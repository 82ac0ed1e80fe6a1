/** Watches the entries of a folder of the machine. */
import { machine } from "./machine.ts";
import type { FolderEvents, FolderWatch, FolderWatchOptions } from "./system-watch.ts";

export type { FolderEvents, FolderWatch } from "./system-watch.ts";

export function watchFolder(
  folder: string,
  options: FolderWatchOptions,
  events: FolderEvents,
): Promise<FolderWatch> {
  return machine().watchFolder(folder, options, events);
}
