/** Proves that a Unix socket is the daemon's: no other user can have put it there. */

import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Fault } from "../base/faults.ts";

const WRITTEN_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/**
 * Returns the real path of a file or folder that belongs to root, this user or one of `others`, as each folder above it does. Nobody else may
 * write any of these folders, or only with the sticky bit, which protects the entries of others. Throws `SOCKET_UNSAFE`, and the errors
 * of the file system. Calls `others` only if it must: its disk may not answer.
 */
export async function proveOwned(
  path: string,
  others: () => Promise<readonly number[]> = async () => [],
): Promise<string> {
  const real = join(await realpath(dirname(path)), basename(path));
  const refuse = (why: string) => Promise.reject(new Fault("SOCKET_UNSAFE", { detail: why }));
  for (let at = real; ; at = dirname(at)) {
    const facts = await lstat(at);
    const isOpen = (facts.mode & WRITTEN_BY_OTHERS) !== 0 && (facts.mode & STICKY) === 0;
    const isTrusted = [0, process.geteuid?.()].includes(facts.uid) || (await others()).includes(facts.uid);
    if (facts.isSymbolicLink()) await refuse(`${at} is a link`);
    if (!isTrusted) await refuse(`${at} belongs to user ${facts.uid}`);
    if (facts.isDirectory() && isOpen) await refuse(`others may write to ${at}: chmod go-w ${at}`);
    if (at === dirname(at)) return real;
  }
}
