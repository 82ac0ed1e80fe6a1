/** What root does in a folder that is somebody else's. */
import { stat } from "node:fs/promises";

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
