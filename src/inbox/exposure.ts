/** Whether others could put something of theirs in the place of what stands in a folder. */
import { stat } from "node:fs/promises";

const WRITTEN_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/** Who may write a folder may rename what is in it, whoever owns that: only the sticky bit prevents it. */
export async function isExposed(folder: string): Promise<boolean> {
  const { mode } = await stat(folder);
  return (mode & WRITTEN_BY_OTHERS) !== 0 && (mode & STICKY) === 0;
}
