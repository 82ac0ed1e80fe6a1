/** Looks for earlier deliveries in the inboxes of a new work folder. */
import { join } from "node:path";
import { INBOX_TREE_ENTRIES } from "../base/bounds.ts";
import { entriesOf } from "../base/foreign-files.ts";
import { MANIFEST } from "../model/manifest.ts";

/**
 * Whether an inbox holds a manifest where its layout puts one. Anybody may have written it, so it is not read, and may only
 * make transfers wait.
 */
export async function holdDeliveries(
  targets: readonly { readonly inbox: string; readonly layout: string }[],
): Promise<boolean> {
  // A larger inbox counts as one with deliveries.
  let left = INBOX_TREE_ENTRIES;
  const search = async (folder: string, depth: number): Promise<boolean> => {
    const folders: string[] = [];
    for await (const entry of entriesOf(folder, left)) {
      // A manifest beside a delivery begins with the name of the delivery.
      const isManifest = entry.isFile() && `.${entry.name}`.endsWith(`.${MANIFEST}`);
      if (isManifest || --left === 0) return true;
      if (depth > 0 && entry.isDirectory() && !entry.name.startsWith(".")) folders.push(entry.name);
    }
    for (const name of folders) if (await search(join(folder, name), depth - 1)) return true;
    return false;
  };
  const depths = Map.groupBy(targets, ({ inbox }) => inbox);
  for (const [inbox, all] of depths) {
    if (await search(inbox, Math.max(...all.map(({ layout }) => layout.split("/").length)))) return true;
  }
  return false;
}
