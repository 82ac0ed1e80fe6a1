/**
 * Removes a delivered folder from the inbox: moves it aside, so that no reader sees a part of it, and deletes it then. Files
 * that were delivered by themselves, or beside the folder, are deleted one by one.
 *
 * A consumer that works inside the folder still reaches it after the move. So the folder is closed to all other users
 * before anything is deleted, and only its direct entries are deleted, by name: no link is followed, and no folder is
 * entered.
 */

import type { BigIntStats } from "node:fs";
import { join } from "node:path";
import { INBOX_FOLDER_ENTRIES } from "../base/bounds.ts";
import { durableStep, systemDisk } from "../base/disk.ts";
import { exists } from "../base/durable.ts";
import { Fault, tolerate } from "../base/faults.ts";
import { chmod, lstat, readdir, rename, rmdir, unlink } from "../base/files.ts";
import { entriesOf } from "../base/foreign-files.ts";
import { InboxDoor, type InboxFolder, splitPath } from "../base/inbox-door.ts";
import { manifestBound, readDeliveryId } from "../model/manifest.ts";
import { contentOf, identityOf, type Part, type Placement, partsOf } from "../model/placement.ts";

/** A delivery that is to be removed. */
export interface Delivery {
  /** The id in its manifest. */
  readonly id: string;
  readonly folder: string;
  /** Missing: the common inbox. */
  readonly inbox?: string | undefined;
  /** Identifies its parts, if it has one: its manifest may be elsewhere. */
  readonly placement?: Placement | undefined;
}

/** `foreign`: the content is other content now, or holds a folder that Inlet did not make; it is left alone. */
type Result = "removed" | "foreign";

const ASIDE = ".removed";
const MODE_BITS = 0o7777;
/** A consumer may remove entries at any moment, and another process of ours may be clearing the same folder. */
const unlessGone = tolerate("ENOENT");

const door = new InboxDoor(systemDisk);

/**
 * Missing content counts as removed. May be called twice: a crash leaves at most a folder in `staging` that `clearAsides`
 * removes. Throws `DISK_REFUSED`.
 */
export async function removeDelivered(root: string, staging: string, delivery: Delivery): Promise<Result> {
  const { folder, placement, id } = delivery;
  const parent = placement?.parent ?? splitPath(folder).parent;
  const aside = join(staging, `${id}${ASIDE}`);
  try {
    // Some file systems give our files to another user: the staging folder shows which one.
    const { uid } = await lstat(staging, { bigint: true });
    const work = async (open: InboxFolder) => {
      const result = await removeParts(open, delivery, { aside, uid });
      // Else a power cut could bring back a part of it, without what says that it is ours.
      if (placement !== undefined) await open.sync();
      if (placement?.deliver !== "files") await systemDisk.syncFolder(staging);
      return result;
    };
    if ((await door.inFolder(root, parent, work)) === "foreign") return "foreign";
  } catch (error) {
    if (error instanceof Fault && error.code === "TARGET_UNSAFE") return "foreign";
    throw error;
  }
  if (placement?.deliver !== "files") await clearAside(aside);
  return "removed";
}

interface Removal {
  /** Where the folder is moved. */
  readonly aside: string;
  /** The owner of delivered files. */
  readonly uid: bigint;
}

async function removeParts(open: InboxFolder, delivery: Delivery, removal: Removal): Promise<Result> {
  const { folder, placement } = delivery;
  if (placement === undefined) return moveAside(open.at(splitPath(folder).name), delivery, removal);
  let result: Result = "removed";
  // The signs that a delivery is complete go first.
  for (const part of partsOf(placement).toReversed()) {
    const path = open.at(part.as);
    if (part.from === "folder") {
      if ((await moveAside(path, delivery, removal)) === "foreign") return "foreign";
    } else if ((await removeFile(path, part, removal)) === "foreign" && part.from === "file") {
      result = "foreign";
    }
  }
  return result;
}

/** A missing file counts as removed. */
async function removeFile(path: string, { identity }: Part, { uid }: Removal): Promise<Result> {
  const facts = await lstat(path, { bigint: true }).catch(unlessGone);
  if (facts === undefined) return "removed";
  if (identityOf(facts) !== identity || facts.uid !== uid) return "foreign";
  await unlink(path).catch(unlessGone);
  durableStep("file removed");
  return "removed";
}

async function moveAside(folder: string, delivery: Delivery, { aside, uid }: Removal): Promise<Result> {
  const facts = await lstat(folder, { bigint: true }).catch(unlessGone);
  if (facts === undefined) return "removed";
  const isOurs = facts.uid === uid && (await isDelivery(folder, facts, delivery));
  if (!isOurs || !(await isFlat(folder))) return "foreign";
  await clearAside(aside);
  await rename(folder, aside);
  durableStep("folder moved aside");
  // Missing if another process has cleared it.
  const moved = await lstat(aside, { bigint: true }).catch(() => undefined);
  if (moved === undefined) return "removed";
  // Another folder may have taken its place since the checks.
  const isSame = moved.ino === facts.ino;
  if (isSame && (await close(aside))) return "removed";
  if (isSame) await chmod(aside, Number(facts.mode) & MODE_BITS);
  await rename(aside, folder);
  return "foreign";
}

/** Deletes folders that were moved aside. `onFailed` gets the error of each that cannot be deleted. */
export async function clearAsides(staging: string, onFailed: (error: unknown) => void): Promise<void> {
  for (const name of await readdir(staging)) {
    if (name.endsWith(ASIDE)) await clearAside(join(staging, name)).catch(onFailed);
  }
}

/** A missing folder is no error. Throws `DISK_REFUSED`, naming the folder, if it cannot be deleted. */
export async function clearAside(aside: string): Promise<void> {
  if (!(await exists(aside))) return;
  if (!(await lstat(aside)).isDirectory()) return unlink(aside);
  if (!(await close(aside))) {
    throw new Fault("DISK_REFUSED", { detail: `${aside} holds a folder that Inlet did not make` });
  }
  for await (const { name } of entriesOf(aside, INBOX_FOLDER_ENTRIES))
    await unlink(join(aside, name)).catch(unlessGone);
  await rmdir(aside).catch(unlessGone);
}

/** Keeps other users from adding or renaming entries. False if one of them has made a folder before. */
async function close(aside: string): Promise<boolean> {
  await chmod(aside, 0o700);
  durableStep("folder closed");
  return isFlat(aside);
}

/** Every delivered folder is flat at first. */
async function isFlat(folder: string): Promise<boolean> {
  let entries = 0;
  for await (const entry of entriesOf(folder, INBOX_FOLDER_ENTRIES)) {
    entries++;
    if (entry.isDirectory()) return false;
  }
  return entries < INBOX_FOLDER_ENTRIES;
}

async function isDelivery(folder: string, facts: BigIntStats, { id, placement }: Delivery): Promise<boolean> {
  if (!facts.isDirectory()) return false;
  if (placement !== undefined) return contentOf(placement)[0]?.identity === identityOf(facts);
  const found = await readDeliveryId(folder, manifestBound());
  return found !== "refused" && found.id === id;
}
