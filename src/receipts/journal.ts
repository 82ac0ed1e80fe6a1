/** The journal: one line of JSON per change of state, a file per month and writer, only ever appended to. */
import { join } from "node:path";
import { withDescriptor } from "../base/descriptor.ts";
import { faultOfDisk } from "../base/durable.ts";
import type { Receipt } from "../model/receipt.ts";

/** Longer than any line of ours: who reads the journal takes a longer one for damaged. */
export const MOST_LINE_BYTES = 64 * 1024;
/** Of each text where a line would be too long: what stands for people need not be whole. */
const MOST_CHARACTERS = 1_000;

/** It serves people, not decisions: it is not forced to the disk, and its last line may be cut by a power cut. */
export async function appendToJournal(folder: string, receipt: Receipt, writer?: string): Promise<void> {
  const { mailbox, trackingId, sender, state, reason, folder: delivered } = receipt;
  const at = receipt.at[state] ?? "";
  const line = formatLine({ at, mailbox, trackingId, sender, state, reason, folder: delivered });
  const month = at.slice(0, 7);
  const path = join(folder, writer === undefined ? `${month}.jsonl` : `${month}.${writer}.jsonl`);
  try {
    await withDescriptor(path, "a", (file) => file.write(`${line}\n`));
  } catch (error) {
    throw faultOfDisk(error, path);
  }
}

function formatLine(facts: Readonly<Record<string, string | undefined>>): string {
  const line = JSON.stringify(facts);
  if (Buffer.byteLength(line) <= MOST_LINE_BYTES) return line;
  return JSON.stringify(facts, (_key, value: unknown) =>
    typeof value === "string" && value.length > MOST_CHARACTERS
      ? `${value.slice(0, MOST_CHARACTERS)}…`
      : value,
  );
}
