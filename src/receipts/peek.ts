/** Receipts for commands and pages: they look, and change nothing. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isFinal, type Receipt } from "../model/receipt.ts";
import { Places } from "./places.ts";
import type { ReceiptKey } from "./port.ts";
import { findReceipt, orIfMissing, readHighest } from "./reading.ts";
import { findSpent } from "./spent.ts";

/** For whoever looks from outside: a daemon may be at work. */
export interface ReceiptsPeek {
  find(key: ReceiptKey): Promise<Receipt | undefined>;
  /** Receipts of this transfer, of all other mailboxes, that have passwords spent on it. */
  spentOn(key: ReceiptKey): Promise<Receipt[]>;
  /** Every receipt that is not final. What is damaged is left out. */
  unfinished(): Promise<Receipt[]>;
}

export function peekReceipts(work: string): ReceiptsPeek {
  const places = new Places(work);
  return {
    find: (key) => findReceipt(places, key),
    spentOn: (key) => findSpent(places, key),
    unfinished: () => listUnfinished(places),
  };
}

async function listUnfinished(places: Places): Promise<Receipt[]> {
  const names = await readdir(places.openFolder).catch(orIfMissing<string[]>(places.openFolder, []));
  const found: Receipt[] = [];
  for (const name of names) {
    const receipt = await readHighest(join(places.openFolder, name)).catch(() => undefined);
    const latest = receipt === undefined ? undefined : await findReceipt(places, receipt);
    if (latest !== undefined && !isFinal(latest)) found.push(latest);
  }
  return found;
}
