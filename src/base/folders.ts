/** Folders that survive a power cut, with the modes that they are to have. */
import { mkdirSync } from "node:fs";
import { chmod, mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { systemDisk } from "./disk.ts";
import { exists, faultOfDisk } from "./durable.ts";
import { durableStep } from "./durable-step.ts";
import { systemCode } from "./system-code.ts";

const SET_GROUP = 0o2000;

/** Makes a folder and those above it, each on the disk before the next. What the umask forbids others stays forbidden. */
export async function makeFolderDurably(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode }).catch(async (error: unknown) => {
      if (systemCode(error) !== "ENOENT") throw error;
      await makeFolderDurably(dirname(path), mode);
      await mkdir(path, { mode });
    });
  } catch (error) {
    if (await exists(path)) return;
    throw faultOfDisk(error, path);
  }
  await syncNew(path);
}

/** The same, but each folder that is made has exactly this mode, for others to use it. */
export async function makeSharedFolderDurably(path: string, mode: number): Promise<void> {
  if (await exists(path)) return;
  await makeSharedFolderDurably(dirname(path), mode);
  // Who may write the folder above could exchange a new one before a chmod gets to it: it is born with its mode. The
  // umask is the whole process's, so nothing else may run meanwhile.
  const umask = process.umask(0);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw faultOfDisk(error, path);
  } finally {
    process.umask(umask);
  }
  await syncNew(path);
}

async function syncNew(folder: string): Promise<void> {
  try {
    await systemDisk.syncFolder(dirname(folder));
  } catch (error) {
    throw faultOfDisk(error, folder);
  }
  durableStep("folder made");
}

/**
 * A folder in one whose group new files take over (`chmod g+s`) stays such a folder, where that is allowed: otherwise
 * only some of its files would be for the group.
 */
export async function setFolderMode(path: string, mode: number): Promise<void> {
  const inherited = (await stat(path)).mode & SET_GROUP;
  await chmod(path, mode | inherited).catch((error: NodeJS.ErrnoException) => {
    if (inherited === 0 || error.code !== "EPERM") throw error;
    return chmod(path, mode);
  });
}
