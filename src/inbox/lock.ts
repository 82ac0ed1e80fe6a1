/**
 * Who may work on an inbox: one daemon with the embedded engine alone, or any number that share a queue. Either keeps
 * the other out.
 */
import { readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { faultOfDisk } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { type KernelLock, tryLock } from "../base/kernel-lock.ts";

export const HOLDER = "holder.json";

/** Throws `INBOX_HELD`, naming the holder. The work folder must exist. `state`: where the holder keeps its state. */
export async function lockInbox(
  work: string,
  kind: "alone" | "shared",
  nowMs: number,
  state: string,
): Promise<KernelLock> {
  const holderPath = join(work, HOLDER);
  const lock = await tryLock(join(work, "lock"), kind);
  if (lock === undefined) throw new Fault("INBOX_HELD", { detail: await describeHolder(work) });
  const holder = { pid: process.pid, host: hostname(), since: new Date(nowMs).toISOString(), kind, state };
  try {
    await writeFile(holderPath, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
  } catch (error) {
    lock.release();
    throw faultOfDisk(error, holderPath);
  }
  return lock;
}

/** Who took the lock last, whether it still has it or not. */
export async function describeHolder(work: string): Promise<string> {
  try {
    const { pid, host, since, kind } = JSON.parse(await readFile(join(work, HOLDER), "utf8"));
    const who = `process ${Number(pid)} on ${String(host)}, since ${String(since)}`;
    return kind === "shared" ? `${who}, and perhaps others that share a queue` : who;
  } catch {
    return "one that has not said who it is";
  }
}
