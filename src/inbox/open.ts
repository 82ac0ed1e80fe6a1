/** Opens the inboxes: their folders, names and room. */

import { makeFolderDurably } from "../base/durable.ts";
import { stat } from "../base/files.ts";
import { formatLayout, formatName } from "./layout.ts";
import { numberedName, safeNamesInTurns, shortened } from "./names.ts";
import type { Inbox } from "./port.ts";
import { demandGroup, prepareInbox } from "./reach.ts";
import { clearAsides, removeDelivered } from "./removal.ts";
import { Space } from "./space.ts";

/** Inboxes whose identity is remembered. Beyond that, all but the common one are forgotten. */
const MAX_SEEN = 1_000;

interface Identity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** `root`: the common inbox, which must exist. `staging`: for staged folders, on the same file system; is created. */
export async function openInbox(root: string, staging: string, minFreeBytes: () => number): Promise<Inbox> {
  await makeFolderDurably(staging, 0o700);
  // All inboxes are on the disk of the staged folders.
  const space = new Space(staging, minFreeBytes);
  const opened = await stat(root, { bigint: true });
  const { dev } = await stat(staging, { bigint: true });
  const seen = new Map<string, Identity>();
  const isHere = async (inbox = root) => {
    // A disk that does not answer is not here.
    const now = await stat(inbox, { bigint: true }).catch(() => undefined);
    if (now === undefined) return false;
    const known = inbox === root ? opened : seen.get(inbox);
    if (known !== undefined) return now.dev === known.dev && now.ino === known.ino;
    // On another file system, it is the mount point of a disk that is not mounted.
    if (now.dev !== dev) return false;
    if (seen.size >= MAX_SEEN) seen.clear();
    seen.set(inbox, { dev: now.dev, ino: now.ino });
    return true;
  };
  return {
    root,
    async prepare(inboxes) {
      for (const inbox of inboxes) {
        await prepareInbox(inbox, staging);
        await isHere(inbox.path);
      }
    },
    async demandGroups(gids) {
      for (const gid of gids) await demandGroup(gid, staging);
    },
    safeNames: safeNamesInTurns,
    formatLayout,
    formatName,
    shortened,
    numberedName,
    reserve: (key, bytes, files) => space.reserve(key, bytes, files),
    hasRoom: (key) => space.hasRoom(key),
    freeBytes: () => space.freeBytes(),
    forget: (key) => space.forget(key),
    isHere,
    removeDelivered: (delivery) => removeDelivered(delivery.inbox ?? root, staging, delivery),
    clearAsides: (onFailed) => clearAsides(staging, onFailed),
  };
}
