/**
 * Which receipts have passwords spent on a transfer, by its tracking-id: services count wrong passwords over all its
 * recipients, so each mailbox has to know what the others have spent. An entry is an empty file, there before the
 * receipt says that something is spent, and gone after it no longer does. One too many does no harm: the receipt counts.
 */
import { createHash } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { createDurably, makeFolderDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
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
  await createDurably(join(folder, name), async () => {}, places.newFolder).catch((error: unknown) => {
    if (!(error instanceof Fault && error.code === "TARGET_EXISTS")) throw error;
  });
}

/** After the receipt is written. */
export async function forgetUnspent(places: Places, receipt: Receipt, previous: Receipt): Promise<void> {
  if (receipt.refusedPasswords > 0 || previous.refusedPasswords === 0) return;
  const { folder, name } = entryOf(places, receipt);
  await rm(join(folder, name), { force: true });
}

/** Throws `RECEIPT_UNREADABLE`: what is spent is never guessed. */
export async function findSpent(places: Places, trackingId: string): Promise<Receipt[]> {
  const { folder, prefix } = placeOf(places, trackingId);
  const names = await readdir(folder).catch(orIfMissing<string[]>(folder, []));
  const wanted = names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  const receipts = await Promise.all(wanted.map((name) => findByName(places, name)));
  return receipts.flatMap((receipt) =>
    receipt?.trackingId === trackingId && receipt.refusedPasswords > 0 ? [receipt] : [],
  );
}

function entryOf(places: Places, key: ReceiptKey): { folder: string; name: string } {
  const { folder, prefix } = placeOf(places, key.trackingId);
  return { folder, name: `${prefix}${nameOf(key)}` };
}

function placeOf({ spentFolder }: Places, trackingId: string): { folder: string; prefix: string } {
  const digest = createHash("sha256").update(trackingId).digest("hex");
  return { folder: join(spentFolder, digest.slice(0, 2)), prefix: `${digest.slice(0, 32)}.` };
}
