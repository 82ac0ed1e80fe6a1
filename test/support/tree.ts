/** What a folder holds, in a form that can be compared. This file needs no test runner. */
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";

/** Every file below a folder, by path from there; the work folder is left out. */
export async function readTree(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile() && !entry.parentPath.includes(".inlet"));
  const paths = files.map((file) => join(file.parentPath, file.name)).toSorted();
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [relative(folder, path), await readFile(path, "latin1")])),
  );
}

/** Times differ from run to run; nothing else may. */
export function withoutTimes(tree: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(tree).map(([path, content]) => [
      path,
      content.replace(/"(received|expires)": "[^"]+"/g, ""),
    ]),
  );
}
