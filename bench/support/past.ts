/** Writes records of transfers that were delivered long ago, in the program's format. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readVersion } from "../../src/base/version.ts";
import { FORMAT } from "../../src/inbox/work-folder.ts";
import { formatRecord } from "../../src/ledger/format.ts";
import { ledgerPaths, nameOf } from "../../src/ledger/paths.ts";
import { outboxIn } from "../../src/model/outbox.ts";
import { RECORD_VERSION, type TransferRecord } from "../../src/model/record.ts";

interface Delivered {
  readonly trackingId: string;
  readonly transferId: string;
}

/** A daemon starts with them: the folder says which format they have. */
export function writeRecords(work: string, mailbox: string, delivered: Iterable<Delivered>): void {
  const paths = ledgerPaths(work);
  mkdirSync(work, { recursive: true, mode: 0o700 });
  writeFileSync(join(work, "format"), `${FORMAT} ${readVersion()}\n`, { mode: 0o600 });
  const made = new Set<string>();
  for (const { trackingId, transferId } of delivered) {
    const record = recordOf(mailbox, trackingId, transferId);
    const folder = paths.ledgerFolder(nameOf(record));
    if (!made.has(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
    made.add(folder);
    writeFileSync(paths.end(nameOf(record), 1), formatRecord(record), { mode: 0o600 });
  }
}

/** One line of the journal for each, spread over this month until now. */
export function writeJournal(work: string, mailbox: string, delivered: readonly Delivered[]): void {
  const now = new Date();
  const begunMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth());
  const path = join(ledgerPaths(work).journal, `${now.toISOString().slice(0, 7)}.jsonl`);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const lines = delivered.map(({ trackingId, transferId }, index) => {
    const { sender, state, round, folder } = recordOf(mailbox, trackingId, transferId);
    const at = new Date(begunMs + ((now.getTime() - begunMs) * index) / delivered.length).toISOString();
    return `${JSON.stringify({ at, mailbox, trackingId, sender, state, round, folder })}\n`;
  });
  writeFileSync(path, lines.join(""), { mode: 0o600 });
}

/** Outbox entries of deliveries that were not picked up yet. */
export function writeOutbox(work: string, mailbox: string, delivered: Iterable<Delivered>): void {
  mkdirSync(outboxIn(work), { recursive: true, mode: 0o700 });
  for (const { trackingId } of delivered) {
    writeFileSync(join(outboxIn(work), `${nameOf({ mailbox, trackingId })}~1.wait`), "", { mode: 0o600 });
  }
}

export function* inventDelivered(count: number): Generator<Delivered> {
  for (let number = 0; number < count; number++) {
    yield { trackingId: `20250101-000000-${number}`, transferId: `past${number}` };
  }
}

function recordOf(mailbox: string, trackingId: string, transferId: string): TransferRecord {
  const at = "2025-01-01T00:00:00.000Z";
  return {
    version: RECORD_VERSION,
    mailbox,
    trackingId,
    transferId,
    sender: "anna@supplier.example",
    state: "delivered",
    round: 1,
    reason: undefined,
    message: undefined,
    until: undefined,
    expires: undefined,
    passwordInLink: false,
    folder: `${mailbox}/${trackingId}`,
    verified: "all",
    attempts: 1,
    at: { discovered: at, downloading: at, delivering: at, delivered: at },
  };
}
