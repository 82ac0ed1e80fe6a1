/** Opens a ledger in a test's folder, and reads the records of any ledger. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { parseRecord } from "../../src/ledger/format.ts";
import { type LedgerOptions, openLedger } from "../../src/ledger/ledger.ts";
import type { Ledger } from "../../src/ledger/port.ts";
import { hasEnded, type TransferRecord } from "../../src/model/record.ts";

/** `folder`: the inbox, with its work folder `.inlet`. */
export function ledgerIn(folder: string, options: Partial<LedgerOptions> = {}): Promise<Ledger> {
  return openLedger({
    work: join(folder, ".inlet"),
    root: folder,
    clock: systemClock,
    folderMode: () => 0o750,
    watermark: { path: join(folder, ".inlet", "watermark"), id: "test" },
    ...options,
  });
}

/** The last round of each transfer in a work folder: its end record if it has ended, else its note. */
export function readRecords(work: string): TransferRecord[] {
  const found = new Map<string, TransferRecord>();
  const paths = ["notes", "ledger"].flatMap((place) => listFiles(join(work, place)));
  for (const path of paths.filter((it) => /\/notes\/|\.end-\d+\.json$/.test(it))) {
    const text = readFileSync(path, "utf8");
    // A power cut may leave a note without its text, because notes are not synced. Records are.
    if (path.includes("/notes/") && !text.endsWith("\n")) continue;
    const record = parseRecord(text, path);
    const known = found.get(`${record.mailbox} ${record.trackingId}`);
    const isNewer = known === undefined || record.round > known.round || hasEnded(record);
    if (isNewer && record.round >= (known?.round ?? 0))
      found.set(`${record.mailbox} ${record.trackingId}`, record);
  }
  return [...found.values()];
}

function listFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".json")).map((name) => join(folder, name));
}
