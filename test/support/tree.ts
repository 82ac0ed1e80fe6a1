/** The content of a folder in a comparable form. This file needs no test runner. */
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

/** The same below a folder. */
export function prefixed(folder: string, tree: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(tree).map(([name, text]) => [`${folder}/${name}`, text]));
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
