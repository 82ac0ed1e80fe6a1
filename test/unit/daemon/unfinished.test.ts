/** A full disk is over when no transfer waits for room any longer, however the last one ended. */

import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Fault } from "../../../src/base/faults.ts";
import { Outage } from "../../../src/base/outage.ts";
import { readUnfinished } from "../../../src/daemon/unfinished.ts";
import { openInbox } from "../../../src/inbox/inbox.ts";
import { KnownTransfers } from "../../../src/mailbox/known-transfers.ts";
import type { MailboxState } from "../../../src/mailbox/state.ts";
import { mailboxIdOf } from "../../../src/model/transfer.ts";
import { downloadTransfer } from "../../../src/transfer/download.ts";
import type { Source, TransferTools } from "../../../src/transfer/run.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";

test("goes on while a transfer waits for room", async () => {
  const { events, learn } = await setUp();
  await learn([stateOf("m")]);
  expect(events).toEqual(["began"]);
});

test.each([
  ["its mailbox is removed", []],
  ["its mailbox is paused", [{ name: "m", paused: true }]],
])("is over for a transfer when %s", async (_why, mailboxes) => {
  const { events, learn } = await setUp();
  await learn(mailboxes.map(({ name, paused }) => stateOf(name, paused)));
  expect(events).toEqual(["began", "ended"]);
});

test("is over for a transfer that another machine has finished", async () => {
  const { events, learn, finish } = await setUp();
  await finish();
  await learn([stateOf("m")]);
  expect(events).toEqual(["began", "ended"]);
});

test("is over for a transfer whose job runs after it was finished, or while its mailbox is paused", async () => {
  const finished = await setUp();
  await finished.finish();
  await finished.download(false);
  expect(finished.events).toEqual(["began", "ended"]);
  const paused = await setUp();
  await paused.download(true);
  expect(paused.events).toEqual(["began", "ended"]);
});

/** One transfer that waits because of a full disk. */
async function setUp() {
  const folder = await makeFolder();
  const work = join(folder, ".inlet");
  const ledger = await ledgerIn(folder);
  const inbox = await openInbox(folder, join(work, "staging"), () => 0);
  const events: string[] = [];
  const diskTrouble = new Outage(systemClock, {
    began: () => events.push("began"),
    ended: () => events.push("ended"),
  });
  const record = makeRecord();
  await ledger.discover(record);
  diskTrouble.add(ledger.nameOf(record), new Fault("DISK_FULL"));
  const tools = { ledger, inbox, diskTrouble, stuck: new Set<string>() };
  return {
    events,
    async learn(states: readonly MailboxState[]) {
      const unfinished = await readUnfinished(tools);
      unfinished.apply(new Map(states.map((state) => [mailboxIdOf(state.mailbox.name), state])));
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
