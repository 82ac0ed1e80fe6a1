/** A delivery as consumers see it: read from its outbox entry and its end record, with the place of its folder. */
import { join } from "node:path";
import { systemDisk } from "../base/disk.ts";
import { deliveryId, MANIFEST, manifestBound, readDeliveryId } from "../model/manifest.ts";
import { parseRoundKey, type Stored } from "../model/outbox.ts";
import { contentOf, type Placement } from "../model/placement.ts";
import { isDelivered, type TransferRecord, type Verified } from "../model/record.ts";
import type { Following } from "./entry.ts";
import type { Failures, Outbox } from "./outbox.ts";
import type { HandoffTools } from "./port.ts";

/** The end record of a delivery, and what follows from it. */
export interface Delivery extends Omit<TransferRecord, "folder"> {
  /** The same in every attempt to hand it over. */
  readonly id: string;
  readonly folder: string;
  readonly verified: Verified;
  readonly deliveredAt: string;
}

export interface OutboxDelivery extends Stored {
  readonly key: string;
  readonly delivery: Delivery;
}

/** The outbox, and what the hand-offs need besides. */
export type OutboxTools = HandoffTools & { readonly outbox: Outbox; readonly failures: Failures };

/** `unknown`: the file system refuses to answer, or the inbox is not mounted. */
export type FolderStatus = "there" | "acknowledged" | "gone" | "unknown";

/** `problem`: why the manifest there is not the one that was delivered. */
export interface FoundFolder {
  readonly status: FolderStatus;
  readonly problem?: string | undefined;
}

export function deliveryOf(key: string, end: TransferRecord): Delivery {
  const { name, round } = parseRoundKey(key);
  const { verified = "none", folder = "", at } = end;
  return { ...end, id: deliveryId(name, round), round, folder, verified, deliveredAt: at.delivered ?? "" };
}

/** What follows a delivery, as its record says and its rule is configured now. */
export function followingOf(
  { handoffOf }: Pick<HandoffTools, "handoffOf">,
  delivery: Pick<TransferRecord, "mailbox" | "rule" | "steps" | "owners">,
): Following {
  return { steps: delivery.steps ?? [], handoff: handoffOf(delivery) };
}

/** The delivery of an entry. `undefined` while its round is open. */
export async function readOutboxDelivery(
  { ledger }: HandoffTools,
  key: string,
  stored: Stored,
): Promise<OutboxDelivery | undefined> {
  const { name, round } = parseRoundKey(key);
  const end = await ledger.readEnd(name, round);
  return end && { ...stored, key, delivery: deliveryOf(key, end) };
}

/**
 * Reads a delivery whose folder was placed, with the status of the folder, within `Outbox.change`. Removes the entry of a
 * round that ended without a delivery. `undefined` if there is nothing to do for the entry, or not yet.
 */
export async function openOutboxDelivery(
  tools: OutboxTools,
  key: string,
): Promise<(OutboxDelivery & FoundFolder) | undefined> {
  const { outbox } = tools;
  const stored = await outbox.take(key);
  const found = stored && (await readOutboxDelivery(tools, key, stored));
  if (found === undefined) return undefined;
  if (!isDelivered(found.delivery)) {
    await outbox.remove(key, found.kind);
    return undefined;
  }
  const folder = await findStatus(tools, found.delivery);
  return folder && { ...found, ...folder };
}

/** Finds the folder, or the files, by name alone. */
export async function findByName({ inbox, ledger }: HandoffTools, delivery: Delivery): Promise<FolderStatus> {
  if (delivery.placement === "files")
    return findFiles(inbox, delivery, await ledger.placements.find(delivery));
  return findFolder(inbox, delivery);
}

/** There while one of the files is there. Without its placement, a delivery was picked up before. */
async function findFiles(
  inbox: HandoffTools["inbox"],
  { inbox: own }: Delivery,
  placement: Placement | undefined,
): Promise<FolderStatus> {
  for (const { as } of placement === undefined ? [] : contentOf(placement)) {
    const isThere = await isFound(join(own ?? inbox.root, placement?.parent ?? "", as));
    if (isThere !== false) return isThere ? "there" : "unknown";
  }
  return (await inbox.isHere(own)) ? "gone" : "unknown";
}

/** A missing folder counts as gone only while the inbox is mounted. */
async function findFolder(
  inbox: HandoffTools["inbox"],
  { folder, inbox: own, acknowledgement }: Delivery,
): Promise<FolderStatus> {
  const path = join(own ?? inbox.root, folder);
  const isThere = await isFound(path);
  if (isThere === false) return (await inbox.isHere(own)) ? "gone" : "unknown";
  if (isThere === undefined) return "unknown";
  if (acknowledgement === undefined) return "there";
  const isAcknowledged = await isFound(join(path, acknowledgement));
  if (isAcknowledged === undefined) return "unknown";
  return isAcknowledged ? "acknowledged" : "there";
}

/** Finds the folder by its name and its manifest, or the files by name. `undefined` while the folder is still staged. */
export async function findStatus(tools: HandoffTools, delivery: Delivery): Promise<FoundFolder | undefined> {
  // Checked first: the folder may be placed at any moment.
  const { inbox, ledger } = tools;
  if (!(await ledger.isPlaced(delivery))) return undefined;
  const status = await findByName(tools, delivery);
  if (delivery.placement !== undefined || status === "gone") return { status };
  // After the pick-up, another delivery may get the name. A folder whose manifest cannot be read counts as the right one.
  const folder = join(delivery.inbox ?? inbox.root, delivery.folder);
  const found = await readDeliveryId(folder, manifestBound(delivery));
  if (found === "refused") return { status };
  return (found.id ?? delivery.id) === delivery.id ? { status, problem: found.problem } : { status: "gone" };
}

/** What consumers get of a delivery, and where it is. */
export interface Announced extends Omit<Delivery, "files"> {
  /** The absolute path of the manifest: in the folder, beside it, or of the copy in the work folder. */
  readonly manifestPath: string;
  /** The manifest's path from the inbox's root; missing if consumers get none. */
  readonly manifest: string | undefined;
  /** The names of files that were delivered by themselves; missing for a folder. */
  readonly files: readonly string[] | undefined;
}

export async function announcedOf({ inbox, ledger }: HandoffTools, delivery: Delivery): Promise<Announced> {
  const root = delivery.inbox ?? inbox.root;
  const inRoot = (manifest: string) => ({ manifest, manifestPath: join(root, manifest) });
  const inside = { ...delivery, ...inRoot(join(delivery.folder, MANIFEST)), files: undefined };
  const placement = await ledger.placements.find(delivery);
  if (placement === undefined) return inside;
  const files = placement.deliver === "files" ? contentOf(placement).map(({ as }) => as) : undefined;
  if (placement.manifest !== undefined) {
    return { ...delivery, ...inRoot(join(placement.parent, placement.manifest)), files };
  }
  if (placement.isManifestInside === true) return { ...inside, files };
  const copy = join(ledger.placements.folderOf(delivery) ?? "", MANIFEST);
  return { ...delivery, manifest: undefined, manifestPath: copy, files };
}

/** `undefined` if the file system refuses to answer. */
async function isFound(path: string): Promise<boolean | undefined> {
  try {
    return (await systemDisk.kindOf(path)) !== undefined;
  } catch {
    return undefined;
  }
}
