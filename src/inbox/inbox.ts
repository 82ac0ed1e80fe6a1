/** Opens the inboxes: their folders, and the room on their disk. */

import { join } from "node:path";
import { makeFolderDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { stat, statfs, tryLstat } from "../base/files.ts";
import { entriesOf } from "../base/foreign-files.ts";
import { demandGroup, type NewInbox, prepareInbox } from "./reach.ts";
import { clearAsides, type Delivery, removeDelivered } from "./removal.ts";

/** Inboxes whose identity is remembered. Beyond that, all but the common one are forgotten. */
const MAX_SEEN = 1_000;
/** Manifest, sums, marker, record and folders of a delivery. */
const ADDED_FILES = 8;
/** The most that a file takes on the disk beside its bytes. */
const BYTES_PER_FILE = 4096;

/** `root`: the common inbox, which must exist. `staging`: for staged folders, on the same file system; is created. */
export async function openInbox(root: string, staging: string, minFreeBytes: () => number) {
  await makeFolderDurably(staging, 0o700);
  const opened = await stat(root, { bigint: true });
  const { dev } = await stat(staging, { bigint: true });
  const seen = new Map<string, { readonly dev: bigint; readonly ino: bigint }>();
  /**
   * Whether an inbox, by default the common one, is still the folder that was opened or first seen: an unmounted disk
   * leaves an empty one.
   */
  const isHere = async (inbox = root): Promise<boolean> => {
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
    /** The common inbox: an absolute path. */
    root,
    /**
     * Creates each folder that is missing, and proves that the work folder's content can be renamed into it. Called
     * before a delivery to it begins. Throws `INBOX_APART`, and the faults of the disk.
     */
    async prepare(inboxes: readonly NewInbox[]): Promise<void> {
      for (const inbox of inboxes) {
        await prepareInbox(inbox, staging);
        await isHere(inbox.path);
      }
    },
    /** Proves that Inlet may give files to these groups. Throws `GROUP_REFUSED`. */
    async demandGroups(gids: readonly number[]): Promise<void> {
      for (const gid of gids) await demandGroup(gid, staging);
    },
    isHere,
    /**
     * Whether there is a folder, and no link, at this path from an inbox's root. An empty one is no delivery: that of single
     * files exists before they are decided.
     */
    async hasDelivery(path: string, inbox = root): Promise<boolean> {
      const folder = join(inbox, path);
      if ((await tryLstat(folder))?.isDirectory() !== true) return false;
      for await (const _ of entriesOf(folder, 1)) return true;
      return false;
    },
    /** As `removeDelivered` of `removal.ts`. */
    removeDelivered: (delivery: Delivery) => removeDelivered(delivery.inbox ?? root, staging, delivery),
    /** Finishes removals that a crash cut short. `onFailed` gets the error of each folder that cannot be removed. */
    clearAsides: (onFailed: (error: unknown) => void) => clearAsides(staging, onFailed),
  };
}

interface Need {
  readonly bytes: number;
  readonly files: number;
}

/** The room on a disk. `path`: any folder on it. `minFreeBytes`: as configured now. */
export function openRoom(path: string, minFreeBytes: () => number) {
  let [reservedBytes, reservedFiles] = [0, 0];
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
    if (inodes > 0 && ffree - reservedFiles < files)
      return `${path}: only ${ffree - reservedFiles} more files fit (inodes)`;
    return undefined;
  };
  return {
    /** Reserves room for a transfer beside the room that is reserved for others. Throws `DISK_FULL`. */
    async reserve(key: string, contentBytes: number, contentFiles: number) {
      const files = contentFiles + ADDED_FILES;
      const bytes = contentBytes + files * BYTES_PER_FILE;
      const lack = await describeLack({ bytes, files });
      if (lack !== undefined) {
        lacking.set(key, { bytes, files });
        throw new Fault("DISK_FULL", { detail: lack });
      }
      lacking.delete(key);
      reservedBytes += bytes;
      reservedFiles += files;
      let left = bytes;
      let leftFiles = files;
      /** This many more bytes of the transfer are on the disk. */
      const use = (count: number): void => {
        reservedBytes -= Math.min(count, left);
        left -= Math.min(count, left);
      };
      return {
        use,
        release: () => {
          use(left);
          reservedFiles -= leftFiles;
          leftFiles = 0;
        },
        /** The disk was full despite the reservation: `hasRoom` is false until the rest of it fits. */
        ranShort: () => void lacking.set(key, { bytes: left, files }),
      };
    },
    /** Whether a transfer for which `reserve` failed would fit now. True for any other transfer. */
    async hasRoom(key: string): Promise<boolean> {
      const need = lacking.get(key);
      return need === undefined || (await describeLack(need)) === undefined;
    },
    /** Now. */
    async freeBytes(): Promise<number> {
      const { bavail, bsize } = await statfs(path);
      return bavail * bsize;
    },
    /** This transfer needs no room from now on. */
    forget: (key: string) => void lacking.delete(key),
  };
}
