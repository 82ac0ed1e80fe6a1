/**
 * Kernel locks on files, taken by letting SQLite lock them. They exclude processes and containers that share the disk,
 * and end with their holder, even after a crash. A suspended process (SIGSTOP) still holds its locks.
 */
import { open } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { Fault } from "./faults.ts";

export interface KernelLock {
  /** May be called twice. */
  release(): void;
}

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;

const TAKE = {
  // Without a journal file, and held until the file is closed.
  alone: "PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE",
  // A read transaction that stays open: it allows other shared locks, and no exclusive one.
  shared: "BEGIN; SELECT count(*) FROM sqlite_schema",
} as const;

/** `undefined` if another process holds the lock. Creates the file if it is missing. Throws faults, and the system's errors. */
export async function lockBySqlite(path: string, kind: keyof typeof TAKE): Promise<KernelLock | undefined> {
  // SQLite would not say why it cannot create the file.
  await (await open(path, "a", 0o600)).close();
  try {
    const held = tryTake(path, kind);
    return held && { release: () => held.isOpen && held.close() };
  } catch (error) {
    if (!(error instanceof Error && "errcode" in error)) throw error;
    const code = error.errcode === SQLITE_FULL ? "DISK_FULL" : "DISK_REFUSED";
    throw new Fault(code, { detail: `${path}: ${error.message}`, cause: error });
  }
}

/** The lock lasts until the database is closed. `undefined` if another process holds the lock. */
export function tryTake(path: string, kind: keyof typeof TAKE, options = {}): DatabaseSync | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { ...options, timeout: 0 });
    database.exec(TAKE[kind]);
    return database;
  } catch (error) {
    database?.close();
    if (error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
}
