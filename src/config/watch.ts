/** Watches the configuration file, and reports new settings, or the fault of a changed file. */

import { dirname } from "node:path";
import { Coalesced } from "../base/concurrency.ts";
import { asFault, type Fault } from "../base/faults.ts";
import { tryReadFile, watchFolder } from "../base/files.ts";
import { type LoadOptions, loadSettings } from "./load.ts";
import type { Settings } from "./settings.ts";
import { digestOf } from "./source.ts";

/** An editor may write the file in several steps. */
const SETTLE_MS = 300;
const OPTIONS = { ignoreInitial: true, followSymlinks: false };

export interface SettingsEvents {
  changed(settings: Settings): Promise<void>;
  /** The changed file is invalid; the old settings stay in force. */
  refused(fault: Fault): void;
  /** The system cannot watch the folder, so changes are noticed some seconds later. */
  unwatchable(fault: Fault): void;
}

/**
 * Watches the folder, because editors replace the file and Kubernetes replaces a link beside it, and compares the content.
 * `file` and `digest` are those of the current settings, so a change since they were loaded is noticed too.
 */
export async function followSettings(
  file: string | undefined,
  digest: string | undefined,
  options: LoadOptions,
  events: SettingsEvents,
) {
  let knownDigest = digest;
  const reload = new Coalesced(async () => {
    knownDigest = await readDigest(file);
    try {
      await events.changed(await loadSettings(options));
    } catch (error) {
      events.refused(asFault(error));
    }
  });
  const look = async () => {
    const found = await readDigest(file);
    // A file that is missing now is being replaced, and its successor is noticed.
    if (found !== undefined && found !== knownDigest) await reload.run();
  };
  let timer: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void look(), SETTLE_MS);
  };
  const { unwatchable } = events;
  const watcher =
    file === undefined ? undefined : await watchFolder(dirname(file), OPTIONS, { changed, unwatchable });
  await watcher?.ready;
  await look();
  return {
    /** Reads the file now, changed or not. */
    reload: () => reload.run(),
    async close(): Promise<void> {
      clearTimeout(timer);
      await watcher?.close();
      await reload.idle();
    },
  };
}

/** `undefined` if the file is missing, or there is none. */
async function readDigest(file: string | undefined): Promise<string | undefined> {
  try {
    const text = file && (await tryReadFile(file));
    return text === undefined ? undefined : digestOf(text);
  } catch {
    // A reload says why.
    return "unreadable";
  }
}
