/** What root makes in a state folder that is somebody else's has to be readable for that one: the daemon. */
import { chown, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

const OURS = ["client-id", "tokens"];

/** Does nothing for anybody but root, who alone can give files away. */
export async function handOverState(state: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(state);
  if (uid === 0) return;
  const tokens = (await readdir(join(state, "tokens")).catch(() => [])).map((name) => join("tokens", name));
  for (const name of [...OURS, ...tokens]) {
    const path = join(state, name);
    const owner = (await stat(path).catch(() => undefined))?.uid;
    // Some file systems know no owners: then whoever may read the folder may read what is in it.
    if (owner === 0) await chown(path, uid, gid).catch(() => {});
  }
}
