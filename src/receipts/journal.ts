/** The journal: one line of JSON per change of state, a file per month and writer, only ever appended to. */
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import type { Receipt } from "../model/receipt.ts";

/** It serves people, not decisions: it is not forced to the disk, and its last line may be cut by a power cut. */
export async function appendToJournal(folder: string, receipt: Receipt, writer?: string): Promise<void> {
  const { mailbox, trackingId, sender, state, reason, folder: delivered } = receipt;
  const at = receipt.at[state] ?? "";
  const line = JSON.stringify({ at, mailbox, trackingId, sender, state, reason, folder: delivered });
  await appendFile(
    join(folder, `${at.slice(0, 7)}${writer === undefined ? "" : `.${writer}`}.jsonl`),
    `${line}\n`,
    { mode: 0o600 },
  );
}
