/** A daemon's report just before a power cut: its last step, the states it has reported, and the disk as it sees it. */
import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";

export interface CrashReport {
  /** The durable step that was just done. */
  readonly step: string;
  /** The last reported state of each transfer: it must hold after the power cut. */
  readonly reported: Readonly<Record<string, string>>;
  readonly names: readonly string[];
}

/**
 * Every folder, and every delivered or staged file, with mode and size; sorted. Other files may be half written by a poll,
 * and the journal is not synced.
 */
export function listNames(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .flatMap((entry) => {
      const path = join(entry.parentPath, entry.name);
      const name = relative(folder, path);
      const stats = statSync(path, { throwIfNoEntry: false });
      if (stats === undefined) return [];
      const mode = (stats.mode & 0o777).toString(8);
      if (stats.isDirectory()) return [`${name}/ ${mode}`];
      const isContent = /^inbox\/(?!\.inlet\/)|\/staging\//.test(name);
      return isContent ? [`${name} ${mode} ${stats.size} bytes`] : [];
    })
    .toSorted();
}
