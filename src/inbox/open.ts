/** Opens an inbox: its folders, its names and its room. */
import { stat } from "node:fs/promises";

import { makeFolderDurably } from "../base/durable.ts";
import { formatLayout, formatName } from "./layout.ts";
import { numberedName, safeNamesInBatches, shortened } from "./names.ts";
import type { Inbox } from "./port.ts";
import { clearAsides, removeDelivered } from "./removal.ts";
import { Space } from "./space.ts";

/** `staging`: where staged folders are, on the same file system. */
export async function openInbox(root: string, staging: string, minFreeBytes: number): Promise<Inbox> {
  await makeFolderDurably(staging, 0o700);
  const opened = await stat(root, { bigint: true });
  const space = new Space(staging, minFreeBytes);
  return {
    root,
    safeNames: safeNamesInBatches,
    formatLayout,
    formatName,
    shortened,
    numberedName,
    reserve: (key, bytes, files) => space.reserve(key, bytes, files),
    hasRoom: (key) => space.hasRoom(key),
    freeBytes: () => space.freeBytes(),
    forget: (key) => space.forget(key),
    async isHere() {
      const now = await stat(root, { bigint: true }).catch(() => undefined);
      return now?.dev === opened.dev && now.ino === opened.ino;
    },
    removeDelivered: (delivery) => removeDelivered(root, staging, delivery),
    clearAsides: (onFailed) => clearAsides(staging, onFailed),
  };
}
