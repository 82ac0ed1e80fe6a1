/** Removes a delivered folder from the inbox: moved aside first, so that nobody sees half of it, then deleted. */
import { constants } from "node:fs";
import { lstat, open, realpath, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { durableStep, exists, faultOfDisk } from "../base/durable.ts";
import type { Inbox } from "./port.ts";

type Delivery = Parameters<Inbox["removeDelivered"]>[0];

const MANIFEST = "transfer.json";
/** What tells deliveries apart stands at the beginning of a manifest; the list of files may be long. */
const HEAD_BYTES = 64 * 1024;

/** A crash leaves at most something in `staging` that no transfer there knows, which the next start clears. */
export async function removeDelivered(
  root: string,
  staging: string,
  delivery: Delivery,
): Promise<"removed" | "foreign"> {
  const folder = join(root, delivery.folder);
  const aside = join(staging, `${delivery.id}.removed`);
  try {
    if (await exists(folder)) {
      const { ino } = await lstat(folder, { bigint: true });
      if (!(await isInPlace(root, folder)) || !(await isDelivery(folder, delivery))) return "foreign";
      await rm(aside, { recursive: true, force: true });
      await rename(folder, aside);
      durableStep("folder moved aside");
      // Somebody may have put another one there since it was looked at. One that is gone was cleared by another process.
      const moved = await lstat(aside, { bigint: true }).catch(() => undefined);
      if (moved !== undefined && moved.ino !== ino) {
        await rename(aside, folder);
        return "foreign";
      }
    }
    await rm(aside, { recursive: true, force: true, maxRetries: 3 });
    return "removed";
  } catch (error) {
    throw faultOfDisk(error, folder);
  }
}

/** No link on the way leads elsewhere. */
async function isInPlace(root: string, folder: string): Promise<boolean> {
  const [realRoot, realParent] = [await realpath(root), await realpath(dirname(folder))];
  return join(realRoot, dirname(folder).slice(root.length)) === realParent;
}

async function isDelivery(folder: string, { trackingId, transferId }: Delivery): Promise<boolean> {
  if (!(await lstat(folder)).isDirectory()) return false;
  const head = await readHead(join(folder, MANIFEST));
  const holds = (key: string, value: string) => head.includes(`\n  "${key}": ${JSON.stringify(value)},\n`);
  return holds("trackingId", trackingId) && holds("transferId", transferId);
}

/** Empty where there is none: never through a link, and never waiting for a pipe. */
async function readHead(path: string): Promise<string> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
  if (file === undefined) return "";
  try {
    if (!(await file.stat()).isFile()) return "";
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
