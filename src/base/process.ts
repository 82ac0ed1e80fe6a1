/** Process groups of the programs that we start, and the user as whom root works. */
import { stat } from "node:fs/promises";

/** It may have ended a moment ago. */
export function signalGroup(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {}
}

/** Why a program did not even begin, as the end of a sentence about it. */
export function describeStartFailure(error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT") return "was not found";
  return error.code === "EACCES" ? "may not be run by this user" : `could not be started (${error.code})`;
}

/**
 * Root does the work as the one to whom the folder belongs: the daemon, which has to be able to read what is made there.
 * Nor can a link that somebody else has put there lead root astray then. Anybody else just does it.
 */
export async function asOwnerOf<Value>(folder: string, work: () => Promise<Value>): Promise<Value> {
  const owner = await stat(folder).catch(() => undefined);
  const group = process.getegid?.();
  if (process.geteuid?.() !== 0 || group === undefined || owner === undefined || owner.uid === 0)
    return work();
  process.setegid?.(owner.gid);
  process.seteuid?.(owner.uid);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(group);
  }
}
