/** Whether a kernel lock in a folder keeps another process out: tried with a process that is started for it. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { tryLock } from "../base/kernel-lock.ts";

const TIMEOUT_MS = 10_000;

/** `path`: a file that may be made. Within one process SQLite would keep itself out, whatever the kernel does. */
export async function isLockKept(path: string, signal: AbortSignal): Promise<boolean> {
  const lock = await tryLock(path, "alone");
  if (lock === undefined) return false;
  try {
    const child = [fileURLToPath(import.meta.url), path];
    const { stdout } = await promisify(execFile)(process.execPath, child, { timeout: TIMEOUT_MS, signal });
    return stdout === "held";
  } finally {
    lock.release();
  }
}

if (import.meta.main) {
  const lock = await tryLock(process.argv[2] ?? "", "alone");
  process.stdout.write(lock === undefined ? "held" : "free");
  lock?.release();
}
