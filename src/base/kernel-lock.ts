/**
 * Locks that the kernel keeps, taken through SQLite on a file: they hold between processes and containers that share
 * the disk, and they are gone the moment their holder is, however that ended. A stopped process still holds its own.
 */
import { open } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { faultOfDisk } from "./durable.ts";
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
