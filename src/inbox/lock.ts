/**
 * Only one daemon with the embedded engine may hold an inbox.
 *
 * The lock is the kernel's, taken through SQLite on a file of the work folder: it holds between containers that share
 * the disk, and it is gone the moment its holder is, however that ended. A file beside it says who holds it.
 */
import { open, readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { faultOfDisk } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";

export interface InboxLock {
  release(): void;
}

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;

/** Throws `INBOX_HELD`, naming the holder. The work folder must exist. */
export async function lockInbox(work: string, nowMs: number): Promise<InboxLock> {
  const path = join(work, "lock");
  const holderPath = join(work, "holder.json");
  let database: DatabaseSync | undefined;
  try {
    // SQLite would not say why it cannot make the file.
    await (await open(path, "a", 0o600)).close();
    database = new DatabaseSync(path, { timeout: 0 });
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    database?.close();
    if (!(error instanceof Error && "errcode" in error)) throw faultOfDisk(error, path);
    if (error.errcode === SQLITE_BUSY)
      throw new Fault("INBOX_HELD", { detail: await describeHolder(holderPath) });
    const code = error.errcode === SQLITE_FULL ? "DISK_FULL" : "DISK_REFUSED";
    throw new Fault(code, { detail: `${path}: ${error.message}`, cause: error });
  }
  const holder = { pid: process.pid, host: hostname(), since: new Date(nowMs).toISOString() };
  try {
    await writeFile(holderPath, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
  } catch (error) {
    database.close();
    throw faultOfDisk(error, holderPath);
  }
  return { release: () => database.close() };
}

async function describeHolder(path: string): Promise<string> {
  try {
    const { pid, host, since } = JSON.parse(await readFile(path, "utf8"));
    return `process ${Number(pid)} on ${String(host)}, since ${String(since)}`;
  } catch {
    return "one that has not said who it is";
  }
}
