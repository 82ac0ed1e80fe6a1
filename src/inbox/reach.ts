/** Proves that a folder can be renamed from the work folder into an inbox. */

import type { Stats } from "node:fs";
import { dirname, join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { systemDisk, UNCHANGED } from "../base/disk.ts";
import { makeFolderDurably } from "../base/durable.ts";
import { Fault, systemCode } from "../base/faults.ts";
import { lchown, lookAtLink, mkdir, readdir, rename, rmdir, stat } from "../base/files.ts";
import { InboxDoor } from "../base/inbox-door.ts";
import { randomHex } from "../base/random.ts";

/** An inbox that deliveries may go to. */
export interface NewInbox {
  readonly path: string;
  /** Of the folder, if it has to be created. */
  readonly mode: number;
}

/** No delivery has a name that begins with a dot, and consumers skip such names. */
const PROBE = /^\.inlet-probe-[0-9a-f]{12}$/;
const PROBE_ABANDONED_MS = 60 * 60_000;

export function probeName(): string {
  return `.inlet-probe-${randomHex(6)}`;
}

/** Creates an inbox if it is missing. `from`: a folder in the work folder. Throws `INBOX_APART`. */
export async function prepareInbox({ path, mode }: NewInbox, from: string): Promise<void> {
  await makeFolderDurably(dirname(path), mode);
  await makeFolderDurably(path, mode, "shared");
  const isNear = await canReach(from, path, systemClock.now());
  if (!isNear) throw new Fault("INBOX_APART", { detail: path });
}

/**
 * Renames an empty folder into the inbox, under a hidden name, and removes it there. Only a real rename tells: parts of
 * one file system are apart if they are separate mounts, subvolumes or quota projects. A refusal for another reason, such
 * as a missing permission, does not count.
 */
export async function canReach(from: string, inbox: string, nowMs: number): Promise<boolean> {
  const traveller = join(from, probeName());
  // Only empty folders: in the inbox, other users may have given a delivery the name of a probe.
  const removeEmpty = (path: string) => rmdir(path);
  await clearAbandoned(from, (name) => join(from, name), nowMs, removeEmpty);
  await mkdir(traveller, { mode: 0o700 });
  try {
    await new InboxDoor(systemDisk).inFolder(inbox, "", async ({ at }) => {
      await clearAbandoned(inbox, at, nowMs, removeEmpty);
      const arrived = at(probeName());
      await rename(traveller, arrived);
      await rmdir(arrived);
    });
    return true;
  } catch (error) {
    // A later call removes it.
    await rmdir(traveller).catch(() => {});
    if (error instanceof Fault) throw error;
    return systemCode(error) !== "EXDEV" && (await stat(inbox)).dev === (await stat(from)).dev;
  }
}

/**
 * Tries to give a folder to a group: membership alone does not decide. A user namespace may hide the group, a filter may
 * forbid the call, and a file system may have no groups. Throws `GROUP_REFUSED`.
 */
export async function demandGroup(gid: number, folder: string): Promise<void> {
  const trial = join(folder, probeName());
  await mkdir(trial, { mode: 0o700 });
  try {
    await lchown(trial, UNCHANGED, gid);
    if ((await stat(trial)).gid !== gid) throw refusedGroup(gid, "the file system ignores it");
  } catch (error) {
    const code = systemCode(error);
    throw ["EPERM", "EINVAL", "ENOTSUP", "ENOSYS"].includes(code) ? refusedGroup(gid, code, error) : error;
  } finally {
    await rmdir(trial);
  }
}

function refusedGroup(gid: number, why: string, cause?: unknown): Fault {
  const isMember = [process.getegid?.(), ...(process.getgroups?.() ?? [])].includes(gid);
  const who = `user ${process.geteuid?.()} is ${isMember ? "a" : "no"} member`;
  return new Fault("GROUP_REFUSED", { detail: `${gid} (${why}; ${who})`, cause });
}

/**
 * Removes folders of probes that were killed. A younger folder may belong to a probe that runs now. `at`: the path of an entry.
 */
export async function clearAbandoned(
  folder: string,
  at: (name: string) => string,
  nowMs: number,
  remove: (path: string, facts: Stats) => Promise<void>,
): Promise<void> {
  // The probe itself reports an unreadable folder.
  for (const name of await readdir(folder).catch(() => [])) {
    const facts = PROBE.test(name) ? await lookAtLink(at(name)) : undefined;
    if (facts === undefined || nowMs - facts.mtimeMs <= PROBE_ABANDONED_MS) continue;
    // A folder that cannot be removed does not prevent the probe.
    await remove(at(name), facts).catch(() => {});
  }
}
