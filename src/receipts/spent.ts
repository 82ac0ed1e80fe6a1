/**
 * Which receipts have passwords spent on a transfer, by its tracking-id: services count wrong passwords over all its
 * recipients, so each mailbox has to know what the others have spent. An entry is an empty file, there before the
 * receipt says that something is spent, and gone after it no longer does. One too many does no harm: the receipt counts.
 */
import { hash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { removeFile, touchDurably } from "../base/durable.ts";
import { makeFolderDurably } from "../base/folders.ts";
import type { Receipt } from "../model/receipt.ts";
import { nameOf, type Places } from "./places.ts";
import type { ReceiptKey } from "./port.ts";
import { findByName, orIfMissing } from "./reading.ts";

/** Before the receipt is written. `previous`: the one that is there now. */
export async function noteSpent(
  places: Places,
  receipt: Receipt,
  previous: Receipt | undefined,
): Promise<void> {
  if (receipt.refusedPasswords === 0 || (previous?.refusedPasswords ?? 0) > 0) return;
  const { folder, name } = entryOf(places, receipt);
  await makeFolderDurably(folder, 0o700);
  await touchDurably(join(folder, name));
}

/** After the receipt is written. */
export async function forgetUnspent(places: Places, receipt: Receipt, previous: Receipt): Promise<void> {
  if (receipt.refusedPasswords > 0 || previous.refusedPasswords === 0) return;
  const { folder, name } = entryOf(places, receipt);
  await removeFile(join(folder, name));
}

/** Those of other mailboxes. Throws `RECEIPT_UNREADABLE`: what is spent is never guessed. */
export async function findSpent(places: Places, key: ReceiptKey): Promise<Receipt[]> {
  const { trackingId } = key;
  const { folder, prefix } = placeOf(places, trackingId);
  const names = await readdir(folder).catch(orIfMissing<string[]>(folder, []));
  const found = names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  const others = found.filter((name) => name !== nameOf(key));
  const receipts = await Promise.all(others.map((name) => findByName(places, name)));
  return receipts.flatMap((receipt) =>
    receipt?.trackingId === trackingId && receipt.refusedPasswords > 0 ? [receipt] : [],
  );
}

function entryOf(places: Places, key: ReceiptKey): { folder: string; name: string } {
  const { folder, prefix } = placeOf(places, key.trackingId);
  return { folder, name: `${prefix}${nameOf(key)}` };
}

function placeOf({ spentFolder }: Places, trackingId: string): { folder: string; prefix: string } {
  const digest = hash("sha256", trackingId, "hex");
  return { folder: join(spentFolder, digest.slice(0, 2)), prefix: `${digest.slice(0, 32)}.` };
}
