import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { Record } from "../../../src/collect/record.ts";
import { settleFault } from "../../../src/collect/settle.ts";
import type { CollectTools, Source } from "../../../src/collect/tools.ts";
import { RECEIPT_VERSION, type Receipt } from "../../../src/model/receipt.ts";
import { openReceipts } from "../../../src/receipts/files.ts";
import { makeFolder } from "../../support/program.ts";

test("I2 once: a disk that fails between the rename and the receipt never leads to a second delivery", async () => {
  const receipts = await openReceipts(await makeFolder());
  const nothing = { reason: undefined, message: undefined, until: undefined, expires: undefined };
  const receipt: Receipt = {
    version: RECEIPT_VERSION,
    mailbox: "m",
    trackingId: "t1",
    transferId: "x",
    sender: "a@example.org",
    state: "delivering",
    ...nothing,
    folder: "m/t1",
    attempts: 1,
    refusedPasswords: 0,
    unansweredPasswords: 0,
    refusedFingerprints: [],
    at: { delivering: "2026-03-01T08:00:00.000Z" },
  };
  await receipts.put({ ...receipt, state: "discovered" }, undefined);
  await receipts.put({ ...receipt, state: "collecting" }, { ...receipt, state: "discovered" });
  await receipts.put(receipt, { ...receipt, state: "collecting" });
  const tools = {
    receipts,
    clock: { now: () => 0 },
    random: () => 0.5,
    patience: { retryMs: 1, diskMs: 7, lockedMs: 1 },
    watch: { stateChanged() {}, progressed() {} },
  } as unknown as CollectTools;
  const source = { health: { shaky: false } } as unknown as Source;
  const { signal } = new AbortController();
  for (const code of ["DISK_FULL", "DISK_REFUSED", "UNEXPECTED", "CONNECTION_LOST"] as const) {
    const next = await settleFault(tools, source, new Record(tools, receipt), new Fault(code), signal);
    expect(next).toEqual({ kind: "again", afterMs: 7 });
    expect((await receipts.find(receipt))?.state).toBe("delivering");
  }
});
