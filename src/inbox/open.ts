/** Opens an inbox: its folders, its names and its room. */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { faultOfDisk } from "../base/durable.ts";
import { makeFolderDurably } from "../base/folders.ts";
import { formatLayout } from "./layout.ts";
import type { Members } from "./members.ts";
import { safeNames } from "./names.ts";
import type { Inbox } from "./port.ts";
import { clearAside, isAside, removeDelivered } from "./removal.ts";
import { Space } from "./space.ts";
import { Staging } from "./staging.ts";

export async function openInbox(
  root: string,
  work: string,
  minFreeBytes: number,
  members: Members,
): Promise<Inbox> {
  const stagingFolder = join(work, "staging");
  const quarantine = join(work, "quarantine");
  for (const folder of [stagingFolder, quarantine]) await makeFolderDurably(folder, 0o700);
  const began = await stat(root, { bigint: true });
  const space = new Space(stagingFolder, minFreeBytes);
  const staging = new Staging(stagingFolder, members);
  return {
    root,
    quarantine,
    safeNames,
    formatLayout,
    stage: (key, fence, finished) => staging.take(key, fence, finished),
    reserve: (key, bytes, files) => space.reserve(key, bytes, files),
    hasRoom: (key) => space.hasRoom(key),
    freeBytes: () => space.freeBytes(),
    forget: (key) => space.forget(key),
    async isHere() {
      const now = await stat(root, { bigint: true }).catch(() => undefined);
      return now?.dev === began.dev && now.ino === began.ino;
    },
    removeDelivered: (delivery) => removeDelivered(root, stagingFolder, delivery),
    listStaged: () => readdir(stagingFolder),
    dropStaged: (key) => dropStaged(join(stagingFolder, key)),
  };
}

/** Nobody else could ever write in what is staged, unless it was delivered before. */
async function dropStaged(path: string): Promise<void> {
  if (isAside(path)) return clearAside(path);
  await rm(path, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) => {
    throw faultOfDisk(error, path);
  });
}
