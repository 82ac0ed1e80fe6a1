/** A ledger in a folder of a test, and what is in one. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { parseRecord } from "../../src/ledger/format.ts";
import { type LedgerOptions, openLedger } from "../../src/ledger/open.ts";
import type { Ledger } from "../../src/ledger/port.ts";
import { hasEnded, type TransferRecord } from "../../src/model/record.ts";

/** `folder`: the inbox is there, with its work folder in `.inlet`. */
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

/** All records and notes below a work folder: of each transfer the last round, and its end where it has ended. */
export function readRecords(work: string): TransferRecord[] {
  const found = new Map<string, TransferRecord>();
  const paths = ["notes", "ledger"].flatMap((place) => listFiles(join(work, place)));
  for (const path of paths.filter((it) => /\/notes\/|\.end-\d+\.json$/.test(it))) {
    const text = readFileSync(path, "utf8");
    // Notes are not synced: a power cut may leave one without its text. A record never.
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
