/** Finds folders of ours in which other users could replace files. */
import { dirname, join } from "node:path";
import { exists } from "../base/durable.ts";
import { tolerate } from "../base/faults.ts";
import { stat } from "../base/files.ts";

/** Folders in which other users could replace the work folder, or entries of it, while Inlet runs. */
export async function findExposed(work: string): Promise<string[]> {
  const exposed: string[] = [];
  for (const folder of [dirname(work), work]) {
    if ((await exists(folder)) && (await isExposed(folder))) exposed.push(folder);
  }
  return exposed;
}

/** The folders in the state folder whose files Inlet trusts. The empty name is the state folder itself. */
export const TRUSTED_FOLDERS = ["", "passwords", "tokens"];

/**
 * Folders in which every user could replace tokens and passwords. A group is not named: in a container it is usually the
 * daemon's own. `doctor` names it.
 */
export async function findExposedState(state: string): Promise<string[]> {
  const exposed: string[] = [];
  const parent = await stat(dirname(state));
  // The sticky bit protects what is in the parent, but does not prevent a new file in the state folder.
  if ((parent.mode & STICKY) === 0 && isWrittenByAll(parent.mode)) exposed.push(dirname(state));
  for (const name of TRUSTED_FOLDERS) {
    const found = await stat(join(state, name)).catch(tolerate("ENOENT"));
    if (found !== undefined && isWrittenByAll(found.mode)) exposed.push(join(state, name));
  }
  return exposed;
}

export function isWrittenByAll(mode: number): boolean {
  return (mode & 0o002) !== 0;
}

const WRITTEN_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/**
 * A user who may write a folder may rename every entry in it, even those of others: only the sticky bit prevents that.
 */
export async function isExposed(folder: string): Promise<boolean> {
  const { mode } = await stat(folder);
  return (mode & WRITTEN_BY_OTHERS) !== 0 && (mode & STICKY) === 0;
}
