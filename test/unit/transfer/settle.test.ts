import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { listenTo } from "../../../src/model/events.ts";
import type { Next } from "../../../src/model/job.ts";
import { conclude } from "../../../src/transfer/download.ts";
import type { Source, TransferTools } from "../../../src/transfer/run.ts";
import { Run } from "../../../src/transfer/run.ts";
import { outcomeOf } from "../../../src/transfer/settle.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

const { signal } = new AbortController();

test("I2 once: a disk that fails between the end record and the rename never leads to a second delivery", async () => {
  const { tools, run, events } = await setUp();
  run.isDecided = true;
  for (const code of ["DISK_FULL", "DISK_REFUSED", "UNEXPECTED", "CONNECTION_LOST"] as const) {
    expect(await settle(run, new Fault(code))).toEqual({ kind: "again", afterMs: 7 });
  }
  expect(events).toEqual(["DISK_REFUSED", "UNEXPECTED", "CONNECTION_LOST"]);
  expect((await tools.ledger.find(run.record))?.state).toBe("discovered");
});

test("I2 once: an attempt whose round was ended by another removes its own content, and nothing else", async () => {
  const { run, events, folder } = await setUp();
  const other = join(folder, ".inlet/staging", `${run.key}~1~0123456789abcdef`);
  await mkdir(other);
  const stage = await run.openStage();
  await writeFile(join(stage.folder, "file"), "content");
  expect(await settle(run, new Fault("ROUND_LOST"))).toEqual({ kind: "done" });
  expect(await readdir(join(folder, ".inlet/staging"))).toEqual([`${run.key}~1~0123456789abcdef`]);
  expect(events).toEqual(["lost t1"]);
});

test("a stage that another process removed after the end of the round is no disk failure", async () => {
  const { tools, run, events } = await setUp();
  await tools.ledger.end({ ...run.record, state: "gone" });
  expect(await settle(run, new Fault("DISK_REFUSED"))).toEqual({ kind: "done" });
  expect(events).toEqual(["lost t1"]);
});

test("I6 no contagion: a service that asks for fewer requests is paused by its Retry-After, not by a transfer's wait", async () => {
  const { run } = await setUp({ attempts: 12 });
  expect(await settle(run, new Fault("RATE_LIMITED", { retryAfterMs: 30 }))).toEqual({
    kind: "again",
    afterMs: 2_048,
    limitMs: 30,
  });
  expect(await settle(run, new Fault("RATE_LIMITED"))).toEqual({ kind: "again", afterMs: 2_048, limitMs: 1 });
  expect(await settle(run, new Fault("SERVER_FAULT"))).toEqual({ kind: "again", afterMs: 2_048 });
});

test.each(["RATE_LIMITED", "SERVER_FAULT"] as const)(
  "I6 no contagion: after %s with a rest of a day, a transfer waits for an hour, and the service decides about the rest",
  async (code) => {
    const { run } = await setUp();
    const limitMs = 24 * 3_600_000;
    expect(await settle(run, new Fault(code, { retryAfterMs: limitMs }))).toEqual({
      kind: "again",
      afterMs: 3_600_000,
      limitMs,
    });
  },
);

test.each([
  ["that the service names, also if it is longer than usual", 90_000, 90_000],
  ["that the service names, up to a day", 24 * 3_600_000, 24 * 3_600_000],
  ["that is usual, if it names none", undefined, 75_000],
  ["of a minute, if it names a shorter one", 1_000, 60_000],
])(
  "I3 no burnt transfers: a locked transfer is left alone for the time %s",
  async (_, retryAfterMs, afterMs) => {
    const { run, tools } = await setUp();
    Object.assign(tools.patience, { lockedMs: 75_000 });
    const fault = new Fault("TRANSFER_LOCKED", retryAfterMs === undefined ? {} : { retryAfterMs });
    expect(await settle(run, fault)).toEqual({ kind: "again", afterMs });
  },
);

test("I7 nothing silent: an attempt whose job was given to another process says that it has left the transfer", async () => {
  const { run, events } = await setUp();
  expect(await settle(run, new Fault("STOPPED"))).toEqual({ kind: "done" });
  expect(events).toEqual(["left t1"]);
});

async function settle(run: Run, fault: Fault): Promise<Next> {
  return conclude(run, await outcomeOf(run, fault));
}

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
    diskTrouble: { add() {}, clear() {} },
    stuck: new Set(),
    emit: listenTo({
      "transfer-lost": ({ record }) => events.push(`lost ${record.trackingId}`),
      "transfer-left": ({ record }) => events.push(`left ${record.trackingId}`),
      "transfer-stuck": ({ fault }) => events.push(fault.code),
    }),
  } as unknown as TransferTools;
  const source = { service: { id: "https://transfer.example.com" } } as unknown as Source;
  return { folder, tools, events, run: new Run(tools, source, record, signal) };
}
