/** What a daemon says just before the power goes: where it is, what it has told, and what the disk seems to hold. */
import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";

export interface LastWords {
  /** The durable step that it has just taken. */
  readonly step: string;
  /** The last state of each transfer that others were told of: it must not be taken back. */
  readonly told: Readonly<Record<string, string>>;
  readonly names: readonly string[];
}

/**
 * Every folder, and every file that was delivered or is put together, with mode and size; sorted. Other files may be in
 * the making on behalf of a poll, and the journal is not forced to the disk.
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
