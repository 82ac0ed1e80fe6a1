import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { listenTo } from "../../../src/model/events.ts";
import { Run } from "../../../src/transfer/run.ts";
import { settleFault } from "../../../src/transfer/settle.ts";
import type { Source, TransferTools } from "../../../src/transfer/tools.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

const { signal } = new AbortController();

test("I2 once: a disk that fails between the end record and the rename never leads to a second delivery", async () => {
  const { tools, source, run, events } = await setUp();
  run.isDecided = true;
  for (const code of ["DISK_FULL", "DISK_REFUSED", "UNEXPECTED", "CONNECTION_LOST"] as const) {
    const next = await settleFault(tools, source, run, new Fault(code), signal);
    expect(next).toEqual({ kind: "again", afterMs: 7 });
  }
  expect(events).toEqual(["DISK_REFUSED", "UNEXPECTED", "CONNECTION_LOST"]);
  expect((await tools.ledger.find(run.record))?.state).toBe("discovered");
});

test("I2 once: an attempt whose round was ended by another removes its own content, and nothing else", async () => {
  const { tools, source, run, events, folder } = await setUp();
  const other = join(folder, ".inlet/staging", `${run.key}~1~0123456789abcdef`);
  await mkdir(other);
  run.stage = await tools.ledger.stages.openStage(run.record);
  await writeFile(join(run.stage.folder, "file"), "content");
  expect(await settleFault(tools, source, run, new Fault("ROUND_LOST"), signal)).toEqual({ kind: "done" });
  expect(await readdir(join(folder, ".inlet/staging"))).toEqual([`${run.key}~1~0123456789abcdef`]);
  expect(events).toEqual(["lost t1"]);
});

test("a stage that another process removed after the end of the round is no disk failure", async () => {
  const { tools, source, run, events } = await setUp();
  await tools.ledger.end({ ...run.record, state: "gone" });
  expect(await settleFault(tools, source, run, new Fault("DISK_REFUSED"), signal)).toEqual({ kind: "done" });
  expect(events).toEqual(["lost t1"]);
});

test("I6 no contagion: a service that asks for fewer requests is paused by its Retry-After, not by a transfer's wait", async () => {
  const { tools, source, run } = await setUp({ attempts: 12 });
  const settle = (fault: Fault) => settleFault(tools, source, run, fault, signal);
  expect(await settle(new Fault("RATE_LIMITED", { retryAfterMs: 30 }))).toEqual({
    kind: "again",
    afterMs: 2_048,
    limitMs: 30,
  });
  expect(await settle(new Fault("RATE_LIMITED"))).toEqual({ kind: "again", afterMs: 2_048, limitMs: 1 });
  expect(await settle(new Fault("SERVER_FAULT"))).toEqual({ kind: "again", afterMs: 2_048 });
});

async function setUp({ attempts = 1 } = {}) {
  const folder = await makeFolder();
  const ledger = await ledgerIn(folder);
  const record = makeRecord({ attempts });
  await ledger.discover(record);
  const events: string[] = [];
  const tools = {
    ledger,
    clock: { now: () => 0 },
    random: () => 0.5,
    patience: { retryMs: 1, diskMs: 7, lockedMs: 1, slowMs: 1_000 },
    inbox: { forget() {} },
    passwords: { doubt() {} },
    diskFull: { add() {}, clear() {} },
    emit: listenTo({
      "transfer-lost": ({ record }) => events.push(`lost ${record.trackingId}`),
      "transfer-stuck": ({ fault }) => events.push(fault.code),
    }),
  } as unknown as TransferTools;
  const source = { service: { id: "https://transfer.example.com" } } as unknown as Source;
  return { folder, tools, source, events, run: new Run(tools, record) };
}
