/** What root makes in a folder of somebody else's has to be readable for that one: the daemon may run as another user. */
import { chown, stat } from "node:fs/promises";

/** Gives a file to the owner of a folder. Does nothing for anybody but root, who alone can give files away. */
export async function handOver(path: string, folder: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(folder);
  // Some file systems know no owners: then whoever may read the folder may read what is in it.
  if (uid !== 0) await chown(path, uid, gid).catch(() => {});
}
