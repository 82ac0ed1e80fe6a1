/**
 * Files and names that survive a power cut: bytes are on the disk before they get their name, and a name counts
 * only when its folder is on the disk too.
 *
 * Every step after which the disk holds something new is announced on a diagnostics channel, so that a test can stop
 * the process at each of them.
 */
import { randomBytes } from "node:crypto";
import { channel } from "node:diagnostics_channel";
import { mkdirSync } from "node:fs";
import {
  chmod,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  stat,
  unlink,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { Fault } from "./faults.ts";

const TEMPORARY = /^\.[0-9a-f]{12}\.part$/;
const SET_GROUP = 0o2000;
const ABANDONED_MS = 60 * 60_000;

const steps = channel("inlet:durable-step");

/** Announces that a step is done. */
export function durableStep(name: string): void {
  if (steps.hasSubscribers) steps.publish(name);
}

/**
 * Has `write` fill a new file under a temporary name, beside `target` or in `folder`, and gives it its name only when
 * that is done and the bytes are on the disk. Whatever fails leaves nothing behind. Never overwrites: throws
 * `TARGET_EXISTS`.
 */
export async function createDurably(
  target: string,
  write: (file: FileHandle) => Promise<void>,
  folder: string = dirname(target),
): Promise<void> {
  if (await exists(target)) throw new Fault("TARGET_EXISTS", { detail: target });
  await withTemporary(target, 0o600, write, (temporary) => giveNewName(temporary, target), folder);
}

/**
 * Puts a whole text in the place of whatever the file held before: readers see the old or the new. A crash can leave
 * the temporary file behind; `folder` says where, on the same file system, so that somebody can clear it.
 */
export async function replaceDurably(
  target: string,
  text: string,
  mode: number,
  folder: string = dirname(target),
): Promise<void> {
  await withTemporary(
    target,
    mode,
    (file) => file.writeFile(text),
    (temporary) => rename(temporary, target),
    folder,
  );
}

/** Moves a file or folder to a name on the same file system; when it returns, no power cut can move it back. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  durableStep("renamed");
  await syncFolder(dirname(to));
  if (dirname(from) !== dirname(to)) await syncFolder(dirname(from));
  durableStep("rename synced");
}

/** The same for a file, which takes nobody's place: throws `TARGET_EXISTS`. */
export async function renameNewDurably(from: string, to: string): Promise<void> {
  try {
    await giveNewName(from, to);
    await syncFolder(dirname(to));
  } catch (error) {
    throw faultOfDisk(error, to);
  }
  durableStep("rename synced");
}

/** Makes a folder and those above it, each on the disk before the next. What the umask forbids others stays forbidden. */
export async function makeFolderDurably(path: string, mode: number): Promise<void> {
  await makeFolders(path, (folder) => mkdir(folder, { mode }));
}

/** The same, but each folder that is made has exactly this mode, for others to use it. */
export async function makeSharedFolderDurably(path: string, mode: number): Promise<void> {
  await makeFolders(path, async (folder) => {
    // Who may write the folder above could exchange a new one before a chmod gets to it: it is born with its mode. The
    // umask is the whole process's, so nothing else may run meanwhile.
    const umask = process.umask(0);
    try {
      mkdirSync(folder, { mode });
    } finally {
      process.umask(umask);
    }
  });
}

async function makeFolders(path: string, make: (folder: string) => Promise<unknown>): Promise<void> {
  if (await exists(path)) return;
  await makeFolders(dirname(path), make);
  try {
    await make(path).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    });
    await syncFolder(dirname(path));
  } catch (error) {
    throw faultOfDisk(error, path);
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

/** Has a file on the disk that is complete: also its mode, which may well forbid us to write it afterwards. */
export async function finishFile(handle: FileHandle, mode: number): Promise<void> {
  await handle.chmod(mode);
  await handle.sync();
}

/** The same for one that nobody has open. */
export async function syncFile(path: string, mode: number): Promise<void> {
  await withHandle(path, "r+", (handle) => finishFile(handle, mode));
}

export async function syncFolder(path: string): Promise<void> {
  await withHandle(path, "r", (handle) => handle.sync());
}

/** Throws where that cannot be told: an answer would be a guess, and decisions rest on it. */
export async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw faultOfDisk(error, path);
  }
}

/** Takes away temporary files that a crash left behind: those that nobody can be writing any more. */
export async function clearTemporaries(folder: string, nowMs: number): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!TEMPORARY.test(name)) continue;
    const { mtimeMs } = await lstat(join(folder, name)).catch(() => ({ mtimeMs: nowMs }));
    if (nowMs - mtimeMs > ABANDONED_MS) await rm(join(folder, name), { force: true });
  }
}

/** Turns a system error of the file system into a fault; whatever else was thrown stays what it is. */
export function faultOfDisk(error: unknown, path: string): unknown {
  if (!(error instanceof Error && "syscall" in error && "code" in error)) return error;
  const detail = `${path} (${String(error.code)})`;
  const full = ["ENOSPC", "EDQUOT"].includes(String(error.code));
  if (error.code === "EEXIST") return new Fault("TARGET_EXISTS", { detail: path, cause: error });
  return new Fault(full ? "DISK_FULL" : "DISK_REFUSED", { detail, cause: error });
}

async function withTemporary(
  target: string,
  mode: number,
  write: (file: FileHandle) => Promise<void>,
  name: (temporary: string) => Promise<void>,
  folder: string = dirname(target),
): Promise<void> {
  const temporary = join(folder, `.${randomBytes(6).toString("hex")}.part`);
  try {
    const file = await open(temporary, "wx+", mode);
    try {
      await write(file);
      durableStep("temporary written");
      await file.sync();
    } finally {
      await file.close();
    }
    await name(temporary);
    durableStep("named");
    await syncFolder(dirname(target));
    durableStep("name synced");
  } catch (error) {
    // Where even that fails, what went wrong first is what has to be told.
    await rm(temporary, { force: true }).catch(() => {});
    throw faultOfDisk(error, target);
  }
}

/** A hard link cannot replace an existing name, as a rename would; file systems without them get the rename. */
async function giveNewName(temporary: string, target: string): Promise<void> {
  try {
    await link(temporary, target);
    await unlink(temporary);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (!["EPERM", "ENOTSUP", "ENOSYS", "EOPNOTSUPP"].includes(code)) throw error;
    if (await exists(target)) throw new Fault("TARGET_EXISTS", { detail: target });
    await rename(temporary, target);
  }
}

async function withHandle(
  path: string,
  flags: string,
  work: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const handle = await open(path, flags);
  try {
    await work(handle);
  } finally {
    await handle.close();
  }
}
