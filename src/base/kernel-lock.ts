/**
 * Locks that the kernel keeps, taken through SQLite on a file: they hold between processes and containers that share
 * the disk, and they are gone the moment their holder is, however that ended. A stopped process still holds its own.
 */
import { open } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { exists, faultOfDisk } from "./durable.ts";
import { Fault } from "./faults.ts";

export interface KernelLock {
  /** May be called twice. */
  release(): void;
}

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;

const TAKE = {
  alone: "PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE",
  // A read that never ends: others can read too, and nobody can be alone.
  shared: "BEGIN; SELECT count(*) FROM sqlite_schema",
} as const;

/** `undefined` where somebody else holds it. Makes the file where there is none. */
export async function tryLock(path: string, kind: keyof typeof TAKE): Promise<KernelLock | undefined> {
  let database: DatabaseSync | undefined;
  try {
    // SQLite would not say why it cannot make the file.
    await (await open(path, "a", 0o600)).close();
    database = new DatabaseSync(path, { timeout: 0 });
    database.exec(TAKE[kind]);
    const held = database;
    return {
      release() {
        if (held.isOpen) held.close();
      },
    };
  } catch (error) {
    database?.close();
    if (!(error instanceof Error && "errcode" in error)) throw faultOfDisk(error, path);
    if (error.errcode === SQLITE_BUSY) return undefined;
    const code = error.errcode === SQLITE_FULL ? "DISK_FULL" : "DISK_REFUSED";
    throw new Fault(code, { detail: `${path}: ${error.message}`, cause: error });
  }
}

/**
 * Whether somebody holds it alone, for those who only look: no file is made, and nobody is kept out for longer than the
 * look takes. Throws `DISK_UNREADABLE`.
 */
export async function isHeldAlone(path: string): Promise<boolean> {
  if (!(await exists(path))) return false;
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { readOnly: true, timeout: 0 });
    database.exec(TAKE.shared);
    return false;
  } catch (error) {
    if (error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY) return true;
    // Its holder may have gone, and taken it away, since.
    if (!(await exists(path))) return false;
    throw new Fault("DISK_UNREADABLE", { detail: path, cause: error });
  } finally {
    database?.close();
  }
}
