/** Opens the inboxes: their folders, and the room on their disk. */

import { makeFolderDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { stat, statfs } from "../base/files.ts";
import type { Inbox, Room } from "./port.ts";
import { demandGroup, prepareInbox } from "./reach.ts";
import { clearAsides, removeDelivered } from "./removal.ts";

/** Inboxes whose identity is remembered. Beyond that, all but the common one are forgotten. */
const MAX_SEEN = 1_000;
/** Manifest, sums, marker, record and folders of a delivery. */
const ADDED_FILES = 8;
/** The most that a file takes on the disk beside its bytes. */
const BYTES_PER_FILE = 4096;

interface Identity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** `root`: the common inbox, which must exist. `staging`: for staged folders, on the same file system; is created. */
export async function openInbox(root: string, staging: string, minFreeBytes: () => number): Promise<Inbox> {
  await makeFolderDurably(staging, 0o700);
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
    // All inboxes are on the disk of the staged folders.
    ...openRoom(staging, minFreeBytes),
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
    isHere,
    removeDelivered: (delivery) => removeDelivered(delivery.inbox ?? root, staging, delivery),
    clearAsides: (onFailed) => clearAsides(staging, onFailed),
  };
}

interface Need {
  readonly bytes: number;
  readonly files: number;
}

/** `path`: any folder on the disk. `minFreeBytes`: as configured now. */
export function openRoom(path: string, minFreeBytes: () => number): Room {
  let reservedBytes = 0;
  /** Needs that did not fit, by the transfer's key. */
  const lacking = new Map<string, Need>();
  const describeLack = async ({ bytes, files }: Need): Promise<string | undefined> => {
    const { bavail, bsize, files: inodes, ffree } = await statfs(path);
    const free = bavail * bsize;
    const keptBytes = minFreeBytes();
    if (free - reservedBytes - keptBytes < bytes) {
      const reserved = reservedBytes === 0 ? "" : `, ${reservedBytes} of them reserved for others`;
      return `${path}: ${bytes} bytes are needed beside the ${keptBytes} that stay free, but only ${free} are free${reserved}`;
    }
    // Some file systems have no fixed number of files and report zero.
    if (inodes > 0 && ffree < files) return `${path}: only ${ffree} more files fit (inodes)`;
    return undefined;
  };
  return {
    async reserve(key, contentBytes, contentFiles) {
      const files = contentFiles + ADDED_FILES;
      const bytes = contentBytes + files * BYTES_PER_FILE;
      const lack = await describeLack({ bytes, files });
      if (lack !== undefined) {
        lacking.set(key, { bytes, files });
        throw new Fault("DISK_FULL", { detail: lack });
      }
      lacking.delete(key);
      reservedBytes += bytes;
      let left = bytes;
      const use = (count: number) => {
        reservedBytes -= Math.min(count, left);
        left -= Math.min(count, left);
      };
      return {
        use,
        release: () => use(left),
        ranShort: () => void lacking.set(key, { bytes: left, files }),
      };
    },
    async hasRoom(key) {
      const need = lacking.get(key);
      return need === undefined || (await describeLack(need)) === undefined;
    },
    async freeBytes() {
      const { bavail, bsize } = await statfs(path);
      return bavail * bsize;
    },
    forget: (key) => void lacking.delete(key),
  };
}
