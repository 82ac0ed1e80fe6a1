/** Opens an inbox: its folders, its names and its room. */
import { join } from "node:path";
import { makeFolderDurably } from "../base/durable.ts";
import { formatLayout } from "./layout.ts";
import { safeNames } from "./names.ts";
import type { Inbox } from "./port.ts";
import { Space } from "./space.ts";

export async function openInbox(root: string, work: string, minFreeBytes: number): Promise<Inbox> {
  const staging = join(work, "staging");
  const quarantine = join(work, "quarantine");
  for (const folder of [staging, quarantine]) await makeFolderDurably(folder, 0o700);
  const space = new Space(staging, minFreeBytes);
  return {
    root,
    staging,
    quarantine,
    safeNames,
    formatLayout,
    reserve: (key, bytes, files) => space.reserve(key, bytes, files),
    hasRoom: (key) => space.hasRoom(key),
    forget: (key) => space.forget(key),
  };
}
