/** Opens an inbox: its folders, its names and its room. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { makeFolderDurably } from "../base/durable.ts";
import { formatLayout } from "./layout.ts";
import { safeNamesInParts } from "./names.ts";
import type { Inbox } from "./port.ts";
import { clearAside, isAside, removeDelivered } from "./removal.ts";
import { Space } from "./space.ts";

export async function openInbox(root: string, work: string, minFreeBytes: number): Promise<Inbox> {
  const stagingFolder = join(work, "staging");
  await makeFolderDurably(stagingFolder, 0o700);
  const began = await stat(root, { bigint: true });
  const space = new Space(stagingFolder, minFreeBytes);
  return {
    root,
    safeNames: safeNamesInParts,
    formatLayout,
    reserve: (key, bytes, files) => space.reserve(key, bytes, files),
    hasRoom: (key) => space.hasRoom(key),
    freeBytes: () => space.freeBytes(),
    forget: (key) => space.forget(key),
    async isHere() {
      const now = await stat(root, { bigint: true }).catch(() => undefined);
      return now?.dev === began.dev && now.ino === began.ino;
    },
    removeDelivered: (delivery) => removeDelivered(root, stagingFolder, delivery),
    async clearAsides(onFailed) {
      for (const name of (await readdir(stagingFolder)).filter(isAside)) {
        await clearAside(join(stagingFolder, name)).catch(onFailed);
      }
    },
  };
}
