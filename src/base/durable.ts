/** Files that are either wholly there, also after a power cut, or not there at all. */
import { randomBytes } from "node:crypto";
import { type FileHandle, link, lstat, open, rename, rm, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Fault } from "./faults.ts";

/**
 * Has `write` fill a new file under a temporary name beside `target`, and gives it its name only when that is done
 * and the bytes are on the disk. Whatever fails leaves nothing behind. Never overwrites: throws `TARGET_EXISTS`.
 */
export async function createDurably(
  target: string,
  write: (file: FileHandle) => Promise<void>,
): Promise<void> {
  if (await exists(target)) throw new Fault("TARGET_EXISTS", { detail: target });
  const temporary = join(dirname(target), `.${randomBytes(6).toString("hex")}.part`);
  try {
    const file = await open(temporary, "wx+", 0o600);
    try {
      await write(file);
      await file.sync();
    } finally {
      await file.close();
    }
    await giveName(temporary, target);
    await syncFolder(dirname(target));
  } catch (error) {
    throw faultOfDisk(error, target);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Turns a system error of the file system into a fault; whatever else was thrown stays what it is. */
function faultOfDisk(error: unknown, path: string): unknown {
  if (!(error instanceof Error && "syscall" in error && "code" in error)) return error;
  const detail = `${path} (${String(error.code)})`;
  const full = ["ENOSPC", "EDQUOT"].includes(String(error.code));
  if (error.code === "EEXIST") return new Fault("TARGET_EXISTS", { detail: path, cause: error });
  return new Fault(full ? "DISK_FULL" : "DISK_REFUSED", { detail, cause: error });
}

/** A hard link cannot replace an existing name, as a rename would; file systems without them get the rename. */
async function giveName(temporary: string, target: string): Promise<void> {
  try {
    await link(temporary, target);
    await unlink(temporary);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "ENOSYS" && code !== "EOPNOTSUPP") throw error;
    if (await exists(target)) throw new Fault("TARGET_EXISTS", { detail: target });
    await rename(temporary, target);
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch {
    return false;
  }
}
