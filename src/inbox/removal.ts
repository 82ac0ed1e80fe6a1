/**
 * Removes a delivered folder from the inbox: moved aside first, so that nobody sees half of it, then deleted.
 *
 * Consumers may write in it, and one that works inside it still reaches it after the move. So it is closed to all others
 * before anything is deleted, and only what stands directly in it goes, by name: nothing is followed, and nothing entered.
 */
import { chmod, lstat, readdir, realpath, rename, rmdir, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { exists, faultOfDisk } from "../base/durable.ts";
import { durableStep } from "../base/durable-step.ts";
import { Fault } from "../base/faults.ts";
import { readDeliveryId } from "../model/manifest.ts";
import type { Inbox } from "./port.ts";

type Delivery = Parameters<Inbox["removeDelivered"]>[0];

const ASIDE = ".removed";
const MODE_BITS = 0o7777;

/** A crash leaves at most something in `staging` that no transfer there knows, which the next start clears. */
export async function removeDelivered(
  root: string,
  staging: string,
  delivery: Delivery,
): Promise<"removed" | "foreign"> {
  const folder = join(root, delivery.folder);
  const aside = join(staging, `${delivery.id}${ASIDE}`);
  try {
    if (await exists(folder)) {
      const { ino, uid, mode } = await lstat(folder, { bigint: true });
      // On some file systems what we make is somebody else's: the staging folder shows whose.
      if (uid !== (await lstat(staging, { bigint: true })).uid || !(await isInPlace(root, folder)))
        return "foreign";
      if (!(await isDelivery(folder, delivery)) || !(await isFlat(folder))) return "foreign";
      await clearAside(aside);
      await rename(folder, aside);
      durableStep("folder moved aside");
      // Somebody may have put another one there since it was looked at. One that is gone was cleared by another process.
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

/** Whether a name in the staging folder is that of a delivered folder on its way out. */
export function isAside(name: string): boolean {
  return name.endsWith(ASIDE);
}

/** Also where it is gone. Throws `DISK_REFUSED`, naming it, where it cannot be cleared. */
export async function clearAside(aside: string): Promise<void> {
  try {
    if (!(await exists(aside))) return;
    if (!(await lstat(aside)).isDirectory()) return await unlink(aside);
    if (!(await close(aside))) {
      throw new Fault("DISK_REFUSED", { detail: `${aside} holds a folder that Inlet has not made` });
    }
    for (const name of await readdir(aside)) await unlink(join(aside, name)).catch(unlessGone);
    await rmdir(aside).catch(unlessGone);
  } catch (error) {
    throw faultOfDisk(error, aside);
  }
}

/** From then on nobody else can make or rename anything in it. False where somebody had made a folder there before. */
async function close(aside: string): Promise<boolean> {
  await chmod(aside, 0o700);
  durableStep("folder closed");
  return isFlat(aside);
}

/** As every folder is when it is delivered. */
async function isFlat(folder: string): Promise<boolean> {
  const entries = await readdir(folder, { withFileTypes: true });
  return !entries.some((entry) => entry.isDirectory());
}

/** Another process of ours may be clearing it too. */
function unlessGone(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}

/** No link on the way leads elsewhere. */
async function isInPlace(root: string, folder: string): Promise<boolean> {
  const [realRoot, realParent] = [await realpath(root), await realpath(dirname(folder))];
  return join(realRoot, dirname(folder).slice(root.length)) === realParent;
}

async function isDelivery(folder: string, { id }: Delivery): Promise<boolean> {
  return (await lstat(folder)).isDirectory() && (await readDeliveryId(folder)) === id;
}
