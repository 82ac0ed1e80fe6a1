/**
 * Finds out whether the folders that a running daemon needs are still there and writable: a disk can be unmounted, replaced
 * or mounted read-only at any time.
 *
 * The work folder and the state folder are known by their content, because numbers of devices are used again. An inbox is on
 * the file system of the work folder.
 */
import { dirname, join } from "node:path";
import { faultOfDisk, onDisk, temporaryName } from "../base/durable.ts";
import { Fault, tolerate } from "../base/faults.ts";
import { rm, stat, statfs, writeFile } from "../base/files.ts";
import { type Folders, idOf, memoryOf, readWord } from "./work-folder.ts";

/** The folders as they were opened. */
export interface KnownFolders extends Folders {
  /** Of the work folder, and remembered by the state folder. */
  readonly id: string;
  /** In the work folder, for temporary files. */
  readonly temporary: string;
  /** The file systems of the two folders. */
  readonly devices: { readonly work: number; readonly state: number };
}

export async function knowFolders(folders: Folders, id: string, temporary: string): Promise<KnownFolders> {
  const { inbox, work, state } = folders;
  const devices = { work: (await stat(work)).dev, state: (await stat(state)).dev };
  return { inbox, work, state, id, temporary, devices };
}

/** Throws if these are no longer the known folders. Changes nothing. */
export async function demandSame(known: KnownFolders): Promise<void> {
  const { inbox, work, state, devices } = known;
  await demandId(idOf(work), known, async () => {
    const isInboxHere = (await tryStat(inbox))?.dev === devices.work;
    return explainLoss(isInboxHere ? work : inbox, devices.work);
  });
  await demandId(memoryOf(known), known, () => explainLoss(state, devices.state));
  await demandInbox(known, inbox);
}

async function demandId(path: string, { id }: KnownFolders, explain: () => Promise<Fault>): Promise<void> {
  if ((await readWord(path)) === id) return;
  const fault = await explain();
  // The disk may have been mounted meanwhile, and the explanation is wrong then.
  if ((await readWord(path)) !== id) throw fault;
}

/** Room for the records of a delivery. A disk with less is full: some of them would be written, and others not. */
export const NEEDED_BYTES = 32 * 1024;

/** A disk that was full needs more room, or files that come and go would begin and end the trouble again and again. */
export const NEEDED_AFTER_TROUBLE = { bytes: 4 * NEEDED_BYTES, files: 32 };

/** Throws if no file of a few blocks can be written in the work folder or the state folder. */
export async function demandWritable(
  { temporary, state }: KnownFolders,
  wasInTrouble = false,
): Promise<void> {
  const bytes = wasInTrouble ? NEEDED_AFTER_TROUBLE.bytes : NEEDED_BYTES;
  for (const folder of [temporary, state]) {
    const path = join(folder, temporaryName());
    try {
      await writeFile(path, Buffer.alloc(bytes), { flag: "wx", mode: 0o600 });
      if (wasInTrouble) await demandFiles(folder);
      await rm(path, { force: true });
    } catch (error) {
      // A full disk leaves a part of the file. If the disk refuses the removal too, the next start removes it.
      await rm(path, { force: true }).catch(() => {});
      throw faultOfDisk(error, folder);
    }
  }
}

async function demandFiles(folder: string): Promise<void> {
  const { files, ffree } = await statfs(folder);
  // Some file systems have no fixed number of files and report zero.
  if (files > 0 && ffree < NEEDED_AFTER_TROUBLE.files) {
    throw new Fault("DISK_FULL", { detail: `${folder}: only ${ffree} more files fit (inodes)` });
  }
}

/** Throws if a delivery cannot be renamed into an inbox. */
export async function demandInbox({ work, devices }: KnownFolders, inbox: string): Promise<void> {
  const found = await tryStat(inbox);
  if (found?.dev === devices.work) return;
  // After a remount, the device of the work folder may be another one.
  if (found === undefined || found.dev !== (await tryStat(work))?.dev) {
    throw await explainLoss(inbox, devices.work);
  }
}

/** `device`: of the file system that the folder was on. */
async function explainLoss(folder: string, device: number): Promise<Fault> {
  let nearest = folder;
  let found = await tryStat(nearest);
  while (found === undefined) {
    nearest = dirname(nearest);
    found = await tryStat(nearest);
  }
  if (found.dev === device) {
    return new Fault(nearest === folder ? "DISK_REPLACED" : "FOLDER_MISSING", { detail: folder });
  }
  // Without a mount, a folder is on the file system of the folder above it.
  const isMountPoint = found.dev !== (await tryStat(dirname(nearest)))?.dev;
  return new Fault(isMountPoint ? "DISK_REPLACED" : "DISK_UNMOUNTED", { detail: folder });
}

function tryStat(path: string): Promise<{ readonly dev: number } | undefined> {
  return onDisk(path, () => stat(path).catch(tolerate("ENOENT", "ENOTDIR")));
}
