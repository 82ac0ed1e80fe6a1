import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { Record } from "../../../src/collect/record.ts";
import { settleFault } from "../../../src/collect/settle.ts";
import type { CollectTools, StagedSource } from "../../../src/collect/tools.ts";
import type { Receipt } from "../../../src/model/receipt.ts";
import { openReceipts } from "../../../src/receipts/files.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";

test("I2 once: a disk that fails between the rename and the receipt never leads to a second delivery", async () => {
  const receipts = await openReceipts(await makeFolder(), { alone: true });
  const receipt = makeReceipt({ state: "delivering", folder: "m/t1", attempts: 1 });
  await receipts.create({ ...receipt, state: "discovered" }, undefined);
  await receipts.put({ ...receipt, state: "collecting" }, { ...receipt, state: "discovered" });
  await receipts.put(receipt, { ...receipt, state: "collecting" });
  const told: string[] = [];
  const tools = {
    receipts,
    clock: { now: () => 0 },
    random: () => 0.5,
    patience: { retryMs: 1, diskMs: 7, lockedMs: 1 },
    inbox: { forget() {} },
    diskFull: { meets() {}, isPast() {} },
    watch: { stateChanged() {}, progressed() {}, stuck: (_: Receipt, fault: Fault) => told.push(fault.code) },
  } as unknown as CollectTools;
  const source = { health: { shaky: false } } as unknown as StagedSource;
  const { signal } = new AbortController();
  for (const code of ["DISK_FULL", "DISK_REFUSED", "UNEXPECTED", "CONNECTION_LOST"] as const) {
    const next = await settleFault(tools, source, new Record(tools, receipt), new Fault(code), signal);
    expect(next).toEqual({ kind: "again", afterMs: 7 });
    expect((await receipts.find(receipt))?.state).toBe("delivering");
  }
  expect(told).toEqual(["DISK_REFUSED", "UNEXPECTED", "CONNECTION_LOST"]);
});

test("I2 once: who has lost its claim leaves its content, which another may have taken for finished", async () => {
  const folder = await makeFolder();
  await mkdir(join(folder, "content"));
  const told: string[] = [];
  const tools = {
    receipts: { folderName: () => "k" },
    inbox: { forget() {} },
    diskFull: { meets() {}, isPast() {} },
    watch: { lost: ({ trackingId }: Receipt) => told.push(trackingId) },
  } as unknown as CollectTools;
  const source = { health: { shaky: false }, stage: { folder } } as unknown as StagedSource;
  const record = new Record(tools, makeReceipt({ state: "collecting" }));
  const { signal } = new AbortController();
  expect(await settleFault(tools, source, record, new Fault("CLAIM_LOST"), signal)).toEqual({ kind: "done" });
  expect(await readdir(folder)).toEqual(["content"]);
  expect(told).toEqual(["t1"]);
});
