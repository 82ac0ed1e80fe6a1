/** Who besides us can read a file that should be ours alone. */
import { stat } from "node:fs/promises";

const GROUP_BITS = 0o060;
const OTHERS_BITS = 0o006;

/**
 * What to say about a file with secrets; `undefined` where nobody else can read or change it. A group counts only for
 * a file of our own: where the file is somebody else's, the group is how we may read it.
 */
export async function describeReaders(
  path: string,
  uid: number | undefined = process.getuid?.(),
): Promise<string | undefined> {
  const file = await stat(path).catch(() => undefined);
  if (file === undefined) return undefined;
  const mend = `make it its owner's alone (chmod go= ${path})`;
  if ((file.mode & OTHERS_BITS) !== 0) {
    return `${path} can be read or changed by every user of this machine: ${mend}.`;
  }
  const isOurs = uid === undefined || uid === 0 || file.uid === uid;
  if ((file.mode & GROUP_BITS) !== 0 && isOurs) {
    return `${path} can be read or changed by its group: ${mend}.`;
  }
  return undefined;
}
