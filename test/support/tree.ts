/** The content of a folder in a comparable form. This file needs no test runner. */
import { readdirSync, statSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";

/** Every file in a folder by relative path, without the work folder. */
export async function readTree(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile() && !entry.parentPath.includes(".inlet"));
  const paths = files.map((file) => join(file.parentPath, file.name)).toSorted();
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [relative(folder, path), await readFile(path, "latin1")])),
  );
}

/** Removes times, which differ from run to run. */
export function withoutTimes(tree: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(tree).map(([path, content]) => [
      path,
      content.replace(/"(received|expires)": "[^"]+"/g, ""),
    ]),
  );
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
