/**
 * Removes a delivered folder from the inbox: moves it aside, so that no reader sees a part of it, and deletes it then. Files
 * that were delivered by themselves, or beside the folder, are deleted one by one.
 *
 * A consumer that works inside the folder still reaches it after the move. So the folder is closed to all other users
 * before anything is deleted, and only its direct entries are deleted, by name: no link is followed, and no folder is
 * entered.
 */

import { dirname, join } from "node:path";
import { durableStep } from "../base/disk.ts";
import { exists, faultOfDisk } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { chmod, lstat, readdir, realpath, rename, rmdir, unlink } from "../base/files.ts";
import { readDeliveryId } from "../model/manifest.ts";
import { contentOf, identityOf, type Part, partsOf, pathOf } from "../model/placement.ts";
import type { Inbox } from "./port.ts";

type Delivery = Parameters<Inbox["removeDelivered"]>[0];

const ASIDE = ".removed";
const MODE_BITS = 0o7777;

/** A crash leaves at most a folder in `staging` that `clearAsides` removes. */
export async function removeDelivered(
  root: string,
  staging: string,
  delivery: Delivery,
): Promise<"removed" | "foreign"> {
  const { placement } = delivery;
  if (placement === undefined) return removeFolder(root, staging, delivery);
  let isForeign = false;
  // The signs that a delivery is complete go first.
  for (const part of partsOf(placement).toReversed()) {
    if (part.from === "folder") {
      if ((await removeFolder(root, staging, delivery)) === "foreign") return "foreign";
      continue;
    }
    const result = await removeFile(root, staging, join(root, pathOf(placement, part.as)), part);
    if (result === "foreign" && part.from === "file") isForeign = true;
  }
  return isForeign ? "foreign" : "removed";
}

/** A missing file counts as removed. */
async function removeFile(
  root: string,
  staging: string,
  path: string,
  { identity }: Part,
): Promise<"removed" | "foreign"> {
  try {
    if (!(await exists(path))) return "removed";
    const facts = await lstat(path, { bigint: true });
    const isOurs =
      identityOf(facts) === identity && facts.uid === (await lstat(staging, { bigint: true })).uid;
    if (!isOurs || !(await hasNoLinkAbove(root, path))) return "foreign";
    await unlink(path).catch(unlessGone);
    durableStep("file removed");
    return "removed";
  } catch (error) {
    throw faultOfDisk(error, path);
  }
}

async function removeFolder(
  root: string,
  staging: string,
  delivery: Delivery,
): Promise<"removed" | "foreign"> {
  const folder = join(root, delivery.folder);
  const aside = join(staging, `${delivery.id}${ASIDE}`);
  try {
    if (await exists(folder)) {
      const { ino, uid, mode } = await lstat(folder, { bigint: true });
      // Some file systems give our files to another user: the staging folder shows which one.
      if (uid !== (await lstat(staging, { bigint: true })).uid || !(await hasNoLinkAbove(root, folder)))
        return "foreign";
      if (!(await isDelivery(folder, delivery)) || !(await isFlat(folder))) return "foreign";
      await clearAside(aside);
      await rename(folder, aside);
      durableStep("folder moved aside");
      // Another folder may have taken its place since the checks. A missing one was cleared by another process.
      const moved = await lstat(aside, { bigint: true }).catch(() => undefined);
      const isOther = moved !== undefined && moved.ino !== ino;
      if (isOther || (moved !== undefined && !(await close(aside)))) {
        if (!isOther) await chmod(aside, Number(mode) & MODE_BITS);
        await rename(aside, folder);
        return "foreign";
      }
    }
  } catch (error) {
    throw faultOfDisk(error, folder);
  }
  await clearAside(aside);
  return "removed";
}

/** Deletes folders that were moved aside. `onFailed` gets the error of each that cannot be deleted. */
export async function clearAsides(staging: string, onFailed: (error: unknown) => void): Promise<void> {
  for (const name of await readdir(staging)) {
    if (name.endsWith(ASIDE)) await clearAside(join(staging, name)).catch(onFailed);
  }
}

/** A missing folder is no error. Throws `DISK_REFUSED`, naming the folder, if it cannot be deleted. */
export async function clearAside(aside: string): Promise<void> {
  try {
    if (!(await exists(aside))) return;
    if (!(await lstat(aside)).isDirectory()) return await unlink(aside);
    if (!(await close(aside))) {
      throw new Fault("DISK_REFUSED", { detail: `${aside} holds a folder that Inlet did not make` });
    }
    for (const name of await readdir(aside)) await unlink(join(aside, name)).catch(unlessGone);
    await rmdir(aside).catch(unlessGone);
  } catch (error) {
    throw faultOfDisk(error, aside);
  }
}

/** Keeps other users from adding or renaming entries. False if one of them has made a folder before. */
async function close(aside: string): Promise<boolean> {
  await chmod(aside, 0o700);
  durableStep("folder closed");
  return isFlat(aside);
}

/** Every delivered folder is flat at first. */
async function isFlat(folder: string): Promise<boolean> {
  const entries = await readdir(folder, { withFileTypes: true });
  return !entries.some((entry) => entry.isDirectory());
}

/** Another process of ours may be clearing the same folder. */
function unlessGone(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}

/** Whether the path from the inbox to the folder passes through no link. */
async function hasNoLinkAbove(root: string, folder: string): Promise<boolean> {
  const [realRoot, realParent] = [await realpath(root), await realpath(dirname(folder))];
  return join(realRoot, dirname(folder).slice(root.length)) === realParent;
}

async function isDelivery(folder: string, { id, placement }: Delivery): Promise<boolean> {
  const facts = await lstat(folder, { bigint: true });
  if (!facts.isDirectory()) return false;
  if (placement !== undefined) return contentOf(placement)[0]?.identity === identityOf(facts);
  const found = await readDeliveryId(folder);
  return found !== "refused" && found.id === id;
}
