/** Follows the configuration's file: new settings when it has changed and is valid, the reason when it is not. */
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { asFault, type Fault } from "../base/faults.ts";
import { watchFolder } from "../base/watch-folder.ts";
import { type LoadOptions, loadSettings } from "./load.ts";
import type { Settings } from "./settings.ts";
import { digestOf } from "./source.ts";

/** Whoever writes it may do so in several steps. */
const SETTLE_MS = 300;
const OPTIONS = { ignoreInitial: true, followSymlinks: false };

export interface SettingsWatch {
  changed(settings: Settings): Promise<void>;
  /** The old ones stay in force. */
  refused(fault: Fault): void;
  /** The system cannot watch its folder: changes are noticed some seconds later. */
  unwatchable(fault: Fault): void;
}

export interface FollowedSettings {
  /** Reads it now, whether it seems to have changed or not. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

/**
 * The folder is watched, not the file: editors replace it, and Kubernetes exchanges a link beside it. What counts is
 * whether its content is another one then. `file`: where the settings came from; `undefined` where there is none.
 * `digest`: of what they were made of; a change since then counts as much as one from now on.
 */
export async function followSettings(
  file: string | undefined,
  digest: string | undefined,
  options: LoadOptions,
  watch: SettingsWatch,
): Promise<FollowedSettings> {
  let known = digest;
  let last = Promise.resolve();
  const read = async () => {
    known = await readDigest(file);
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
    const found = await readDigest(file);
    // One that is gone for a moment is being replaced.
    if (found !== undefined && found !== known) await reload();
  };
  let timer: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void look(), SETTLE_MS);
  };
  const { unwatchable } = watch;
  const watcher =
    file === undefined ? undefined : await watchFolder(dirname(file), OPTIONS, { changed, unwatchable });
  await watcher?.ready;
  await look();
  return {
    reload,
    async close() {
      clearTimeout(timer);
      await watcher?.close();
      await last;
    },
  };
}

async function readDigest(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const text = await readFile(file, "utf8").catch(() => undefined);
  return text === undefined ? undefined : digestOf(text);
}
