/** A full disk is over when nobody is left who lacks room, however the last one ended. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Fault } from "../../../src/base/faults.ts";
import { Outage } from "../../../src/base/outage.ts";
import { readUnfinished } from "../../../src/daemon/unfinished.ts";
import { openInbox } from "../../../src/inbox/open.ts";
import { KnownTransfers } from "../../../src/mailbox/known-transfers.ts";
import type { MailboxState } from "../../../src/mailbox/state.ts";
import { downloadTransfer } from "../../../src/transfer/download.ts";
import type { Source, TransferTools } from "../../../src/transfer/tools.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";

test("goes on as long as a transfer that lacks room is to be downloaded", async () => {
  const { told, learn } = await setUp();
  await learn([stateOf("m")]);
  expect(told).toEqual(["began"]);
});

test.each([
  ["its mailbox is removed", []],
  ["its mailbox is paused", [{ name: "m", paused: true }]],
])("is over for a transfer when %s", async (_why, mailboxes) => {
  const { told, learn } = await setUp();
  await learn(mailboxes.map(({ name, paused }) => stateOf(name, paused)));
  expect(told).toEqual(["began", "ended"]);
});

test("is over for a transfer that another machine has finished", async () => {
  const { told, learn, finish } = await setUp();
  await finish();
  await learn([stateOf("m")]);
  expect(told).toEqual(["began", "ended"]);
});

test("is over for a transfer whose turn comes when it was finished, or its mailbox is paused", async () => {
  const finished = await setUp();
  await finished.finish();
  await finished.download(false);
  expect(finished.told).toEqual(["began", "ended"]);
  const paused = await setUp();
  await paused.download(true);
  expect(paused.told).toEqual(["began", "ended"]);
});

/** One transfer that met a full disk. */
async function setUp() {
  const folder = await makeFolder();
  const work = join(folder, ".inlet");
  const ledger = await ledgerIn(folder);
  const inbox = await openInbox(folder, join(work, "staging"), 0);
  const told: string[] = [];
  const diskFull = new Outage(systemClock, {
    began: () => told.push("began"),
    ended: () => told.push("ended"),
  });
  const record = makeRecord();
  await ledger.discover(record);
  diskFull.add(ledger.nameOf(record), new Fault("DISK_FULL"));
  const tools = { ledger, inbox, diskFull };
  return {
    told,
    async learn(states: readonly MailboxState[]) {
      const unfinished = await readUnfinished(tools);
      unfinished.apply(new Map(states.map((state) => [state.mailbox.name, state])));
    },
    async finish() {
      await ledger.end({ ...record, state: "gone" });
    },
    download: (paused: boolean) =>
      downloadTransfer(
        tools as unknown as TransferTools,
        { mailbox: { name: "m", paused } } as Source,
        record,
        SIGNAL,
      ),
  };
}

function stateOf(name: string, paused = false): MailboxState {
  return { mailbox: { name, paused }, transfers: new KnownTransfers() } as unknown as MailboxState;
}
