/** Watches the entries of a folder, and polls it if the system cannot watch it. */
import type { ChokidarOptions, FSWatcher } from "chokidar";
import { Fault, systemCode } from "./faults.ts";

/** Poll interval of a folder that cannot be watched. */
const CHECK_EVERY_MS = 5_000;

export interface FolderEvents {
  /** May also be called without a change. */
  changed(path: string, event: "add" | "change" | "other"): void;
  /** The system cannot watch the folder: it is polled every few seconds from now on. Called once. */
  unwatchable(fault: Fault): void;
}

export interface FolderWatch {
  /** Resolves when the watch has begun: later changes are noticed. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

export interface FolderWatchOptions {
  /** Entries that are there already are not reported. */
  readonly ignoreInitial: boolean;
  readonly followSymlinks?: boolean;
  /** How many levels of folders below are watched too; missing: none. */
  readonly depth?: number;
}

export async function watchByChokidar(
  folder: string,
  given: FolderWatchOptions,
  events: FolderEvents,
): Promise<FolderWatch> {
  const { watch } = await import("chokidar");
  const options = { depth: 0, ...given };
  const ready = Promise.withResolvers<void>();
  const begin = (more: ChokidarOptions) =>
    watch(folder, { ...options, ...more })
      .on("all", (event, path) =>
        events.changed(path, event === "add" || event === "change" ? event : "other"),
      )
      .once("ready", () => ready.resolve());
  const native = begin({});
  let polling: FSWatcher | undefined;
  native.on("error", (error) => {
    if (polling !== undefined) return;
    polling = begin({
      // Reports all entries, because changes may have been missed meanwhile.
      ignoreInitial: false,
      backend: "polling",
      pollingInterval: CHECK_EVERY_MS,
      pollingBinaryInterval: CHECK_EVERY_MS,
    });
    // The watch has begun all the same: the folder may be readable at the next poll.
    polling.on("error", () => ready.resolve());
    const detail = `${folder} (${systemCode(error) || "unknown reason"})`;
    events.unwatchable(new Fault("WATCH_REFUSED", { detail, cause: error }));
    void native.close();
  });
  return {
    ready: ready.promise,
    async close() {
      await native.close();
      await polling?.close();
      ready.resolve();
    },
  };
}
