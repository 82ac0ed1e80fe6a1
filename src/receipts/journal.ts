/** The journal: one line of JSON per change of state, a file per month and writer, only ever appended to. */
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { faultOfDisk } from "../base/durable.ts";
import type { Receipt } from "../model/receipt.ts";

/** It serves people, not decisions: it is not forced to the disk, and its last line may be cut by a power cut. */
export async function appendToJournal(folder: string, receipt: Receipt, writer?: string): Promise<void> {
  const { mailbox, trackingId, sender, state, reason, folder: delivered } = receipt;
  const at = receipt.at[state] ?? "";
  const line = JSON.stringify({ at, mailbox, trackingId, sender, state, reason, folder: delivered });
  const month = at.slice(0, 7);
  const path = join(folder, writer === undefined ? `${month}.jsonl` : `${month}.${writer}.jsonl`);
  try {
    await appendFile(path, `${line}\n`, { mode: 0o600 });
  } catch (error) {
    throw faultOfDisk(error, path);
  }
}
