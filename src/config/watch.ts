/** Follows the configuration's file: new settings when it has changed and is valid, the reason when it is not. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { asFault, type Fault } from "../base/faults.ts";
import { type LoadOptions, loadSettings } from "./load.ts";
import type { Settings } from "./settings.ts";

/** Whoever writes it may do so in several steps. */
const SETTLE_MS = 300;

export interface SettingsWatch {
  changed(settings: Settings): Promise<void>;
  /** The old ones stay in force. */
  refused(fault: Fault): void;
}

export interface FollowedSettings {
  /** Reads it now, whether it seems to have changed or not. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

/**
 * The folder is watched, not the file: editors replace it, and Kubernetes exchanges a link beside it. What counts is
 * whether its content is another one then. `file`: where the settings came from; `undefined` where there is none.
 */
export async function followSettings(
  file: string | undefined,
  options: LoadOptions,
  watch: SettingsWatch,
): Promise<FollowedSettings> {
  let known = await digestOf(file);
  let last = Promise.resolve();
  const read = async () => {
    known = await digestOf(file);
    try {
      await watch.changed(await loadSettings(options));
    } catch (error) {
      watch.refused(asFault(error));
    }
  };
  const reload = () => {
    last = last.then(read);
    return last;
  };
  const look = async () => {
    const digest = await digestOf(file);
    // One that is gone for a moment is being replaced.
    if (digest !== undefined && digest !== known) await reload();
  };
  let timer: NodeJS.Timeout | undefined;
  const { watch: watchFolder } = await import("chokidar");
  const watcher =
    file === undefined
      ? undefined
      : watchFolder(dirname(file), { depth: 0, ignoreInitial: true, followSymlinks: false });
  watcher?.on("all", () => {
    clearTimeout(timer);
    timer = setTimeout(() => void look(), SETTLE_MS);
  });
  watcher?.on("error", () => {});
  if (watcher !== undefined) await new Promise<void>((resolve) => watcher.once("ready", resolve));
  return {
    reload,
    async close() {
      clearTimeout(timer);
      await watcher?.close();
      await last;
    },
  };
}

async function digestOf(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const content = await readFile(file).catch(() => undefined);
  return content === undefined
    ? undefined
    : createHash("sha256").update(basename(file)).update(content).digest("hex");
}
