/**
 * Files and folders that survive a power cut: bytes are on the disk before they get their name, and a name counts only
 * when its folder is on the disk too.
 */

import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import {
  type Disk,
  durableStep,
  type FolderSyncs,
  meansNoLinks,
  systemDisk,
  tryUnlink,
  UNCHANGED,
} from "./disk.ts";
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
import { type Sum, sumOf } from "./sums.ts";

const TEMPORARY = /^\.[0-9a-f]{12}\.part$/;
const ABANDONED_MS = 60 * 60_000;

type Content = string | Uint8Array | ((file: OpenFile) => Promise<void>);

/**
 * Writes a new file under a temporary name, beside `target` or in `folder`, and gives it its name once the
 * bytes are on the disk. A failure leaves nothing behind. Never overwrites: throws `TARGET_EXISTS`, possibly after
 * everything was written.
 */
export async function createDurably(target: string, content: Content, folder?: string): Promise<void> {
  await replaceOrCreate(target, content, (unnamed) => giveNewName(unnamed, target), { folder });
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
  await replaceOrCreate(target, text, (unnamed) => rename(unnamed, target), { folder, mode });
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
export async function writeFinished(
  path: string,
  text: LongText,
  mode: number,
): Promise<{ readonly bytes: number; readonly sha256: Sum }> {
  const write = async (file: OpenFile) => {
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const block of blocksOf(text)) {
      await file.write(block);
      hash.update(block);
      bytes += Buffer.byteLength(block);
    }
    await finishFile(file, mode, bytes);
    return { bytes, sha256: sumOf(hash) };
  };
  const attempt = () => withFile(path, "w", write, mode);
  return attempt().catch(async (error: unknown) => {
    // The leftover may be read-only.
    if (systemCode(error) !== "EACCES") throw error;
    await chmod(path, 0o600);
    return attempt();
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

async function replaceOrCreate(
  target: string,
  content: Content,
  giveName: (unnamed: string) => Promise<void>,
  { folder = dirname(target), mode }: { readonly folder?: string | undefined; readonly mode?: number },
): Promise<void> {
  try {
    await writeUnnamed(systemDisk, { folder, content, mode }, (unnamed) => {
      durableStep("temporary written");
      return giveName(unnamed);
    });
    durableStep("named");
    await systemDisk.syncFolder(dirname(target));
  } catch (error) {
    throw faultOfDisk(error, target);
  }
}

interface NewFile {
  readonly folder: string;
  readonly content: Content;
  /** Without a sync, a power cut can leave the file empty. */
  readonly isSynced?: boolean;
  readonly mode?: number | undefined;
}

/**
 * Writes a new file in a folder, which `place` links or renames to its final name on the same file system. After a crash it
 * may stay in the folder; the next start removes it.
 */
export async function writeUnnamed(
  disk: Disk,
  { folder, content, isSynced = true, mode = 0o600 }: NewFile,
  place: (unnamed: string) => Promise<void>,
): Promise<void> {
  const unnamed = join(folder, temporaryName());
  try {
    await writeAndClose(await disk.create(unnamed, mode), content, isSynced);
    await place(unnamed);
  } catch (error) {
    // If this fails, the next start removes it.
    await tryUnlink(disk, unnamed).catch(() => {});
    throw error;
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

/**
 * Makes a folder and its parents, each synced before the next. The umask applies, unless `use` is "shared": then each new
 * folder has exactly this mode, so that others can use it.
 */
export async function makeFolderDurably(path: string, mode: number, use?: "shared"): Promise<void> {
  if (await exists(path)) return;
  await makeFolderDurably(dirname(path), mode, use);
  const making = use === "shared" ? makeFolder(path, mode) : mkdir(path, { mode });
  await making.catch(tolerate("EEXIST"));
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

const SET_GROUP = 0o2000;

/**
 * Sets the mode, and keeps an inherited set-group-ID bit where the system allows it: without the bit, later files in the
 * folder would not get its group.
 */
export async function setFolderMode(path: string, mode: number): Promise<void> {
  const inherited = (await stat(path)).mode & SET_GROUP;
  await chmod(path, mode | inherited).catch((error: unknown) => {
    if (inherited === 0 || systemCode(error) !== "EPERM") throw error;
    return chmod(path, mode);
  });
}

/** Creates files only if they do not exist yet, which is all that the ledger's safety rests on. */
export class OnceFiles {
  readonly #disk: Disk;
  readonly #syncs: FolderSyncs;
  readonly #temporary: string;

  /** `temporary`: a folder on the same file system, for files that have no name yet. */
  constructor(disk: Disk, syncs: FolderSyncs, temporary: string) {
    this.#disk = disk;
    this.#syncs = syncs;
    this.#temporary = temporary;
  }

  /** False if the file exists. Its name is synced in either case, because the caller relies on it. */
  async create(target: string, text: string): Promise<boolean> {
    let isNew = true;
    await writeUnnamed(this.#disk, { folder: this.#temporary, content: text }, async (unnamed) => {
      try {
        await this.#disk.link(unnamed, target);
      } catch (error) {
        if (meansNoLinks(error)) isNew = await this.writeInPlace(target, text);
        else if (systemCode(error) === "EEXIST") isNew = false;
        else throw error;
      }
      await this.#disk.unlink(unnamed);
    });
    await this.#syncs.sync(dirname(target));
    return isNew;
  }

  /** For file systems without hard links: only one process may work, and the next start removes a torn record. */
  async writeInPlace(target: string, text: string): Promise<boolean> {
    const file = await this.#disk.create(target, 0o600).catch(tolerate("EEXIST"));
    if (file === undefined) return false;
    await writeAndClose(file, text);
    await this.#syncs.sync(dirname(target));
    return true;
  }
}

async function writeAndClose(file: OpenFile, content: Content, isSynced = true): Promise<void> {
  try {
    await (typeof content === "function" ? content(file) : file.write(content));
    if (isSynced) await file.sync();
  } finally {
    await file.close();
  }
}
