/** Transfers, and an empty work folder on a model of a disk. */
import { LedgerPaths, nameOf } from "../../src/ledger/paths.ts";
import { RECORD_VERSION, type TransferRecord } from "../../src/model/record.ts";
import { ModelDisk } from "./model-disk.ts";

export const PATHS = new LedgerPaths("/work");
export const INBOX = "/inbox";

function makeTransfer(trackingId: string, mailbox = "m"): TransferRecord {
  return {
    version: RECORD_VERSION,
    mailbox,
    trackingId,
    transferId: "x",
    sender: "a@example.org",
    state: "discovered",
    round: 1,
    reason: undefined,
    message: undefined,
    until: undefined,
    expires: undefined,
    passwordInLink: false,
    folder: undefined,
    attempts: 0,
    at: { discovered: "2026-03-01T08:00:00.000Z" },
  };
}

/** One transfer, received by two mailboxes. */
export const [M1, M2] = [
  makeTransfer("t1", "one@example.org"),
  makeTransfer("t1", "two@example.org"),
] as const;

export function makeWorkFolder(): ModelDisk {
  return new ModelDisk([...PATHS.folders(), ...[M1, M2].map((key) => PATHS.ledgerFolder(nameOf(key)))]);
}
