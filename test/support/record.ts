/** A record for tests, with defaults for all that is not given. */
import { RECORD_VERSION, type TransferRecord } from "../../src/model/record.ts";

export function makeRecord(facts: Partial<TransferRecord> = {}): TransferRecord {
  return {
    version: RECORD_VERSION,
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
    securityMode: "ONE_TIME_PASSWORD",
    folder: undefined,
    round: 1,
    attempts: 0,
    at: { discovered: "2026-03-01T08:00:00.000Z" },
    ...facts,
  };
}
