/** Reads a delivery from its outbox entry and its end record, and finds its folder. */
import { join } from "node:path";
import { systemDisk } from "../base/disk.ts";
import { readDeliveryId } from "../model/manifest.ts";
import { isDelivered, type TransferRecord } from "../model/record.ts";
import { type Delivery, deliveryOf, parseKey } from "./delivery.ts";
import type { Outbox, Stored } from "./outbox.ts";
import type { HandoffTools } from "./tools.ts";

export interface OutboxDelivery {
  readonly key: string;
  readonly end: TransferRecord;
  readonly stored: Stored;
  readonly delivery: Delivery;
}

/** `unknown`: the file system refuses to answer, or the inbox is not mounted. */
export type FolderStatus = "there" | "acknowledged" | "gone" | "unknown";

/** A delivery whose folder was placed. The caller holds the lock of its entry. */
export interface Opened extends OutboxDelivery {
  readonly status: FolderStatus;
}

/** The delivery of an entry. `undefined` while its round is open. */
export async function readOutboxDelivery(
  { ledger }: HandoffTools,
  key: string,
  stored: Stored,
): Promise<OutboxDelivery | undefined> {
  const { name, round } = parseKey(key);
  const end = await ledger.readEnd(name, round);
  if (end === undefined) return undefined;
  return { key, end, stored, delivery: deliveryOf(key, end, stored.entry.folder) };
}

/**
 * Reads a delivery, with the status of its folder, within `Outbox.change`. Removes the entry of a round that ended without
 * a delivery. `undefined` if there is nothing to do for the entry, or not yet.
 */
export async function openOutboxDelivery(
  tools: HandoffTools,
  outbox: Outbox,
  key: string,
): Promise<Opened | undefined> {
  const stored = await outbox.take(key);
  const found = stored && (await readOutboxDelivery(tools, key, stored));
  if (found === undefined) return undefined;
  if (!isDelivered(found.end)) {
    await outbox.remove(key, found.stored.kind);
    return undefined;
  }
  const located = await locate(tools, found);
  if (located === undefined) return undefined;
  const { folder, status } = located;
  if (folder === found.delivery.folder) return { ...found, status };
  const moved = await outbox.save(key, found.stored, { ...found.stored.entry, folder }, found.stored.kind);
  return { ...found, stored: moved, delivery: { ...found.delivery, folder }, status };
}

/** Finds the folder by its name alone. A missing folder counts as gone only while the inbox is mounted. */
export async function findByName(
  inbox: HandoffTools["inbox"],
  { folder, inbox: own, acknowledgement }: Delivery,
): Promise<FolderStatus> {
  const path = join(own ?? inbox.root, folder);
  const isThere = await isFound(path);
  if (isThere === false) return (await inbox.isHere(own)) ? "gone" : "unknown";
  if (isThere === undefined) return "unknown";
  if (acknowledgement === undefined) return "there";
  const isAcknowledged = await isFound(join(path, acknowledgement));
  return isAcknowledged === undefined ? "unknown" : isAcknowledged ? "acknowledged" : "there";
}

/**
 * Finds the folder by its manifest, because a crash may have happened before its real name was noted. `undefined` while
 * the folder is still staged.
 */
export async function locate(
  { inbox, ledger }: HandoffTools,
  { end, stored, delivery }: OutboxDelivery,
): Promise<{ readonly folder: string; readonly status: FolderStatus } | undefined> {
  // Checked first: the folder may be placed at any moment.
  if (!(await ledger.isPlaced(end))) return undefined;
  const { folder, id } = delivery;
  const root = delivery.inbox ?? inbox.root;
  const status = await findByName(inbox, delivery);
  const foundId = status === "gone" ? undefined : await readDeliveryId(join(root, folder));
  // A folder whose manifest cannot be read counts as the right one.
  if (status !== "gone" && (foundId ?? id) === id) return { folder, status };
  // If the entry names the folder, its name is certain.
  const other =
    stored.entry.folder === undefined ? await findNumbered(root, end.folder ?? "", id) : undefined;
  if (other === undefined) return { folder, status: "gone" };
  return { folder: other, status: await findByName(inbox, { ...delivery, folder: other }) };
}

/** Looks at `FOLDER-2`, `FOLDER-3` and so on, until one is missing. */
async function findNumbered(root: string, folder: string, id: string): Promise<string | undefined> {
  for (let number = 2; ; number++) {
    const path = join(root, `${folder}-${number}`);
    if (!(await isFound(path))) return undefined;
    if ((await readDeliveryId(path)) === id) return `${folder}-${number}`;
  }
}

/** `undefined` if the file system refuses to answer. */
async function isFound(path: string): Promise<boolean | undefined> {
  try {
    return (await systemDisk.kindOf(path)) !== undefined;
  } catch {
    return undefined;
  }
}
