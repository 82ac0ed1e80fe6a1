/**
 * Files and folders that survive a power cut: bytes are on the disk before they get their name, and a name counts only
 * when its folder is on the disk too.
 */

import { dirname, join } from "node:path";
import { durableStep, meansNoLinks, systemDisk, UNCHANGED } from "./disk.ts";
import { Fault, faultOfDisk, systemCode, tolerate } from "./faults.ts";
import {
  chmod,
  lchown,
  link,
  lookAtLink,
  lstat,
  makeFolder,
  mkdir,
  type OpenFile,
  readdir,
  rename,
  rm,
  stat,
  unlink,
  withFile,
} from "./files.ts";
import { blocksOf, type LongText } from "./long-text.ts";
import { randomHex } from "./random.ts";

const TEMPORARY = /^\.[0-9a-f]{12}\.part$/;
const ABANDONED_MS = 60 * 60_000;

/**
 * Lets `write` fill a new file under a temporary name, beside `target` or in `folder`, and gives it its name once the
 * bytes are on the disk. A failure leaves nothing behind. Never overwrites: throws `TARGET_EXISTS`, possibly after
 * everything was written.
 */
export async function createDurably(
  target: string,
  write: (file: OpenFile) => Promise<void>,
  folder?: string,
): Promise<void> {
  await withTemporary({ target, write, mode: 0o600, folder }, (temporary) => giveNewName(temporary, target));
}

/** The same for a text. */
export async function createTextDurably(
  target: string,
  text: string | Uint8Array,
  folder?: string,
): Promise<void> {
  await createDurably(target, (file) => file.write(text), folder);
}

/**
 * Replaces the whole content of a file: readers see the old text or the new. `folder`: for the temporary file, on the same
 * file system. A crash can leave it there: see `clearTemporaries`.
 */
export async function replaceDurably(
  target: string,
  text: string,
  mode: number,
  folder?: string,
): Promise<void> {
  const write = (file: OpenFile) => file.write(text);
  await withTemporary({ target, write, mode, folder }, (temporary) => rename(temporary, target));
}

const MODE_BITS = 0o7777;

/**
 * Sets the mode of a complete file, which may forbid further writes, and syncs it. `bytes`: the size that it must have.
 */
export async function finishFile(file: OpenFile, mode: number, bytes?: number): Promise<void> {
  const found = await file.stat();
  if (bytes !== undefined && found.size !== bytes) {
    throw new Fault("DISK_REFUSED", { detail: `a file has ${found.size} bytes instead of ${bytes}` });
  }
  if ((found.mode & MODE_BITS) !== mode) await file.chmod(mode);
  await file.sync();
}

/** Writes a complete file, over a leftover of an earlier run. */
export async function writeFinished(path: string, text: LongText, mode: number): Promise<void> {
  const write = async (file: OpenFile) => {
    let bytes = 0;
    for await (const block of blocksOf(text)) {
      await file.write(block);
      bytes += Buffer.byteLength(block);
    }
    await finishFile(file, mode, bytes);
  };
  const attempt = () => withFile(path, "w", write, mode);
  await attempt().catch(async (error: unknown) => {
    // The leftover may be read-only.
    if (systemCode(error) !== "EACCES") throw error;
    await chmod(path, 0o600);
    await attempt();
  });
}

/** `finishFile` for a file that is not open, and may be read-only. */
export async function syncFile(path: string, mode: number): Promise<void> {
  await withFile(path, "r", (file) => finishFile(file, mode));
}

/** Throws if the file system gives no answer, which must not count as missing. */
export async function exists(path: string): Promise<boolean> {
  return (await systemDisk.kindOf(path)) !== undefined;
}

/** The name of a file or folder that `clearTemporaries` clears. */
export function temporaryName(): string {
  return `.${randomHex(6)}.part`;
}

/** Removes temporary files and folders that a crash left behind. After an hour no process is still writing them. */
export async function clearTemporaries(
  folder: string,
  nowMs: number,
  pattern: RegExp = TEMPORARY,
): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!pattern.test(name)) continue;
    // Missing if its writer has renamed it since.
    const { mtimeMs = nowMs } = (await lookAtLink(join(folder, name))) ?? {};
    if (nowMs - mtimeMs > ABANDONED_MS) await rm(join(folder, name), { force: true, recursive: true });
  }
}

interface NewFile {
  readonly target: string;
  write(file: OpenFile): Promise<void>;
  readonly mode: number;
  /** For the temporary file. Missing: that of the target. */
  readonly folder: string | undefined;
}

async function withTemporary(
  { target, write, mode, folder = dirname(target) }: NewFile,
  giveName: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = join(folder, temporaryName());
  const fill = async (file: OpenFile) => {
    await write(file);
    durableStep("temporary written");
    await file.sync();
  };
  try {
    await withFile(temporary, "wx+", fill, mode);
    await giveName(temporary);
    durableStep("named");
    await systemDisk.syncFolder(dirname(target));
  } catch (error) {
    // Only the first failure is reported.
    await rm(temporary, { force: true }).catch(() => {});
    throw faultOfDisk(error, target);
  }
}

/** A hard link never replaces an existing name, as a rename would. File systems without hard links get the rename. */
async function giveNewName(temporary: string, target: string): Promise<void> {
  try {
    await link(temporary, target);
    await unlink(temporary);
  } catch (error) {
    if (!meansNoLinks(error)) throw error;
    if (await exists(target)) throw new Fault("TARGET_EXISTS", { detail: target });
    await rename(temporary, target);
  }
}

const SET_GROUP = 0o2000;

/** Makes a folder and its parents, each synced before the next. The umask applies. */
export function makeFolderDurably(path: string, mode: number): Promise<void> {
  return makeDurably(path, (missing) => mkdir(missing, { mode }));
}

/** The same, but each new folder has exactly this mode, so that others can use it. */
export function makeSharedFolderDurably(path: string, mode: number): Promise<void> {
  return makeDurably(path, (missing) => makeFolder(missing, mode));
}

async function makeDurably(path: string, make: (path: string) => Promise<unknown>): Promise<void> {
  if (await exists(path)) return;
  await makeDurably(dirname(path), make);
  await make(path).catch(tolerate("EEXIST"));
  await systemDisk.syncFolder(dirname(path));
  durableStep("folder made");
}

/**
 * Gives a folder and the files in it to a group, and syncs each file that changes. Only for a folder that no other user can
 * write. May be called twice.
 */
export async function setGroup(folder: string, gid: number): Promise<void> {
  const changed: string[] = [];
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if ((await lstat(path)).gid === gid) continue;
    await lchown(path, UNCHANGED, gid);
    changed.push(path);
  }
  durableStep("group set");
  // One after the other: the first sync writes the changes of all, and the others find little left to do.
  for (const path of changed) await withFile(path, "r", (file) => file.sync());
  if ((await lstat(folder)).gid !== gid) await lchown(folder, UNCHANGED, gid);
}

/**
 * Sets the mode, and keeps an inherited set-group-ID bit where the system allows it: without the bit, later files in the
 * folder would not get its group.
 */
export async function setFolderMode(path: string, mode: number): Promise<void> {
  const inherited = (await stat(path)).mode & SET_GROUP;
  await chmod(path, mode | inherited).catch((error: NodeJS.ErrnoException) => {
    if (inherited === 0 || error.code !== "EPERM") throw error;
    return chmod(path, mode);
  });
}
