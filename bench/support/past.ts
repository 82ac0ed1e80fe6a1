/** Receipts of transfers that were delivered long ago, written as the program writes them, but all at once. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { RECEIPT_VERSION, type Receipt } from "../../src/model/receipt.ts";
import { formatReceipt } from "../../src/receipts/format.ts";
import { Places } from "../../src/receipts/places.ts";

interface Delivered {
  readonly trackingId: string;
  readonly transferId: string;
}

export function writeReceipts(work: string, mailbox: string, delivered: Iterable<Delivered>): void {
  const places = new Places(work);
  const made = new Set<string>();
  for (const { trackingId, transferId } of delivered) {
    const receipt = receiptOf(mailbox, trackingId, transferId);
    const path = places.donePathOf(receipt);
    if (!made.has(dirname(path))) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    made.add(dirname(path));
    writeFileSync(path, formatReceipt(receipt), { mode: 0o600 });
  }
}

export function* inventDelivered(count: number): Generator<Delivered> {
  for (let number = 0; number < count; number++) {
    yield { trackingId: `20250101-000000-${number}`, transferId: `past${number}` };
  }
}

function receiptOf(mailbox: string, trackingId: string, transferId: string): Receipt {
  const at = "2025-01-01T00:00:00.000Z";
  return {
    version: RECEIPT_VERSION,
    mailbox,
    trackingId,
    transferId,
    sender: "anna@supplier.example",
    state: "collected",
    reason: undefined,
    message: undefined,
    until: undefined,
    expires: undefined,
    passwordInLink: false,
    folder: `${mailbox}/${trackingId}`,
    verified: "all",
    released: false,
    fence: 1,
    attempts: 1,
    refusedPasswords: 0,
    unansweredPasswords: 0,
    refusedFingerprints: [],
    at: { discovered: at, collecting: at, delivering: at, delivered: at, collected: at },
  };
}
