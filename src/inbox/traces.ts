/** Looks for earlier deliveries in the inboxes of a new work folder. */
import type { Dirent } from "node:fs";
import { join } from "node:path";
import { tolerate } from "../base/faults.ts";
import { readdir } from "../base/files.ts";
import { MANIFEST } from "../model/manifest.ts";

/** A larger inbox is not searched to its end, and counts as one with deliveries. */
const MAX_ENTRIES = 100_000;

/**
 * Whether an inbox holds a manifest where its layout puts one. Anybody may have written it, so it is not read, and may only
 * make transfers wait.
 */
export async function holdDeliveries(
  targets: readonly { readonly inbox: string; readonly layout: string }[],
): Promise<boolean> {
  let left = MAX_ENTRIES;
  const search = async (folder: string, depth: number): Promise<boolean> => {
    const entries: Dirent[] =
      (await readdir(folder, { withFileTypes: true }).catch(tolerate("ENOENT", "ENOTDIR"))) ?? [];
    left -= entries.length;
    // A manifest beside a delivery begins with the name of the delivery.
    const isManifest = (entry: Dirent) => entry.isFile() && `.${entry.name}`.endsWith(`.${MANIFEST}`);
    if (left < 0 || entries.some(isManifest)) return true;
    const folders = depth === 0 ? [] : entries.filter((entry) => entry.isDirectory());
    for (const { name } of folders) {
      if (!name.startsWith(".") && (await search(join(folder, name), depth - 1))) return true;
    }
    return false;
  };
  const depths = Map.groupBy(targets, ({ inbox }) => inbox);
  for (const [inbox, all] of depths) {
    if (await search(inbox, Math.max(...all.map(({ layout }) => layout.split("/").length)))) return true;
  }
  return false;
}
