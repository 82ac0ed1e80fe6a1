/** A receipt for tests, with nothing in it but what is given. */
import { RECEIPT_VERSION, type Receipt } from "../../src/model/receipt.ts";

export function makeReceipt(facts: Partial<Receipt> = {}): Receipt {
  return {
    version: RECEIPT_VERSION,
    mailbox: "m",
    trackingId: "t1",
    transferId: "x",
    sender: "a@example.org",
    state: "discovered",
    reason: undefined,
    message: undefined,
    until: undefined,
    expires: undefined,
    passwordInLink: false,
    folder: undefined,
    released: false,
    fence: 0,
    attempts: 0,
    refusedPasswords: 0,
    unansweredPasswords: 0,
    refusedFingerprints: [],
    at: { discovered: "2026-03-01T08:00:00.000Z" },
    ...facts,
  };
}
