/** Orders, as several daemons carry them out on one inbox, and over crashes. */
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { exists } from "../../../src/base/durable.ts";
import { Fault } from "../../../src/base/faults.ts";
import { Outage } from "../../../src/base/outage.ts";
import { coRecipientsAmong } from "../../../src/daemon/co-recipients.ts";
import { runOrders } from "../../../src/daemon/orders.ts";
import { openInbox } from "../../../src/inbox/open.ts";
import { giveOrder, listOrders } from "../../../src/ledger/orders.ts";
import { LedgerPaths } from "../../../src/ledger/paths.ts";
import { KnownTransfers } from "../../../src/mailbox/known-transfers.ts";
import { carryOut } from "../../../src/mailbox/orders.ts";
import { type MailboxState, PollHealth } from "../../../src/mailbox/state.ts";
import { listenTo } from "../../../src/model/events.ts";
import type { Action } from "../../../src/model/order.ts";
import type { State } from "../../../src/model/record.ts";
import { openPasswords } from "../../../src/passwords/open.ts";
import { createEmbeddedQueue } from "../../../src/queue/embedded.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

const CRASH = new Error("the process ends here");

describe("I2 once: an order to deliver again", () => {
  test("begins one round, though two daemons carry it out", async () => {
    const house = await openHouse();
    const [first, second] = [await house.daemon(), await house.daemon()];
    await house.settle("t1", "delivered");
    await house.give("redeliver", "t1");
    const [order] = await listOrders(house.work);
    await Promise.all(
      [first, second].map(({ tools, state }) => order && carryOut(tools, state, order.order)),
    );
    expect(await house.roundOf("t1")).toEqual([2, "discovered"]);
    await Promise.all([first.run(), second.run()]);
    expect(await house.roundOf("t1")).toEqual([2, "discovered"]);
    expect(await listOrders(house.work)).toEqual([]);
  });

  test("is not carried out again where a crash came before it was removed, and it was delivered meanwhile", async () => {
    const house = await openHouse();
    const first = await house.daemon();
    await house.settle("t1", "delivered");
    const given = await house.give("redeliver", "t1");
    const [order] = await listOrders(house.work);
    if (order !== undefined) await carryOut(first.tools, first.state, order.order);
    await house.settle("t1", "delivered");
    const second = await house.daemon();
    await second.run();
    expect([await house.roundOf("t1"), await exists(given)]).toEqual([[2, "delivered"], false]);
  });

  test("that is given twice begins one round", async () => {
    const house = await openHouse();
    const daemon = await house.daemon();
    await house.settle("t1", "quarantined");
    await house.give("retry", "t1");
    await house.give("retry", "t1");
    await daemon.run();
    await house.settle("t1", "delivered");
    await daemon.run();
    expect(await house.roundOf("t1")).toEqual([2, "delivered"]);
  });
});

test("a discarded transfer leaves nothing behind, wherever a crash comes", async () => {
  const house = await openHouse();
  const first = await house.daemon({
    stateChanged() {
      throw CRASH;
    },
  });
  await house.settle("t1", "quarantined");
  await house.give("discard", "t1");
  await first.run();
  await (await house.daemon()).run();
  expect(await house.roundOf("t1")).toEqual([2, "gone"]);
  expect(await readdir(join(house.work, "quarantine"))).toEqual([]);
});

test("a discarded transfer lacks no room any more", async () => {
  const house = await openHouse();
  const daemon = await house.daemon();
  await house.settle("t1", "quarantined");
  const { diskFull, ledger } = daemon.tools;
  diskFull.add(ledger.nameOf({ mailbox: "m", trackingId: "t1" }), new Fault("DISK_FULL"));
  await house.give("discard", "t1");
  await daemon.run();
  expect(diskFull.keys()).toEqual([]);
});

test("a transfer that is gone, and of which an operator knows, may come back; a discarded one may not", async () => {
  const house = await openHouse();
  const daemon = await house.daemon();
  await house.settle("t1", "gone", "not_listed");
  await house.give("discard", "t1");
  await daemon.run();
  const key = { mailbox: "m", trackingId: "t1" };
  expect(await daemon.tools.ledger.find(key)).toMatchObject({ acknowledged: true, reason: "not_listed" });
  await house.settle("t2", "quarantined");
  await house.give("discard", "t2");
  await daemon.run();
  const discarded = await daemon.tools.ledger.find({ mailbox: "m", trackingId: "t2" });
  expect(discarded).toMatchObject({ state: "gone", reason: "discarded" });
});

test("an order that is given while another one for the transfer is carried out is carried out after it", async () => {
  const house = await openHouse();
  let isChanged = false;
  const daemon = await house.daemon({
    stateChanged() {
      if (!isChanged) house.giveNow("discard", "t1");
      isChanged = true;
    },
  });
  await house.settle("t1", "quarantined");
  await house.give("retry", "t1");
  await daemon.run();
  await house.given();
  await daemon.run();
  expect((await house.roundOf("t1"))[1]).toBe("gone");
  expect(await readdir(join(house.work, "orders"))).toEqual([]);
});

test("an order that cannot be carried out is reported once, and keeps no other back", async () => {
  const house = await openHouse();
  const daemon = await house.daemon();
  const ids = ["a", "b", "c", "d"];
  for (const id of ids) {
    await house.settle(id, "quarantined");
    await house.give("discard", id);
  }
  const [first] = await listOrders(house.work);
  const damaged = first?.order.trackingId ?? "";
  const name = daemon.tools.ledger.nameOf({ mailbox: "m", trackingId: damaged });
  await writeFile(new LedgerPaths(house.work).end(name, 1), "\0\0\0\0");
  for (let look = 0; look < 3; look++) await daemon.run();
  expect(daemon.told).toEqual([`discard ${damaged}: RECORD_UNREADABLE`]);
  expect((await listOrders(house.work)).map(({ order }) => order.trackingId)).toEqual([damaged]);
  for (const id of ids.filter((it) => it !== damaged)) expect((await house.roundOf(id))[1]).toBe("gone");
});

test("an order that has to wait for another daemon stays", async () => {
  const house = await openHouse();
  await house.settle("t1", "delivered");
  const given = await house.give("retry", "t1");
  await (await house.daemon({}, false)).run();
  expect(await exists(given)).toBe(true);
  await (await house.daemon({}, true)).run();
  expect(await exists(given)).toBe(false);
});

/** One inbox, and daemons on it that look when they are told to. */
async function openHouse() {
  const folder = await makeFolder();
  const work = join(folder, ".inlet");
  const ledger = await ledgerIn(folder, { writer: "test" });
  const keyOf = (trackingId: string) => ({ mailbox: "m", trackingId });
  const find = async (trackingId: string) => ledger.find(keyOf(trackingId));
  const give = async (action: Action, trackingId: string) =>
    giveOrder(work, {
      ...keyOf(trackingId),
      action,
      round: (await find(trackingId))?.round ?? 1,
      by: "test",
    });
  let giving: Promise<unknown> = Promise.resolve();
  return {
    work,
    async roundOf(trackingId: string) {
      const found = await find(trackingId);
      return [found?.round, found?.state];
    },
    give,
    giveNow(action: Action, trackingId: string) {
      giving = give(action, trackingId);
    },
    given: () => giving,
    /** What a worker makes of its open round. */
    async settle(trackingId: string, state: State, reason?: string) {
      await ledger.discover(makeRecord(keyOf(trackingId)));
      const record = { ...((await find(trackingId)) ?? makeRecord(keyOf(trackingId))), state, reason };
      if (state === "gone") return ledger.end(record);
      const stage = await ledger.stages.openStage(record);
      await writeFile(join(stage.folder, "report.pdf"), "secret");
      const end = { ...record, folder: trackingId };
      await ledger.stages.endWith(stage, end);
      return ledger.stages.place(end, stage);
    },
    /** `canRetry`: what its hand-offs answer. */
    async daemon(heard: { stateChanged?(): void } = {}, canRetry = true) {
      const told: string[] = [];
      const own = await ledgerIn(folder, { writer: "test" });
      const tools = {
        work,
        ledger: own,
        inbox: await openInbox(folder, join(work, "staging"), 0),
        passwords: await openPasswords({
          state: join(folder, "state"),
          clock: systemClock,
          attempts: own.attempts,
          nameOf: (key) => own.nameOf(key),
          coRecipients: coRecipientsAmong(() => [], own),
        }),
        queue: createEmbeddedQueue({ slots: 1, services: () => new Map(), random: Math.random }),
        handoffs: { retry: async () => canRetry },
        clock: systemClock,
        diskFull: new Outage(systemClock, { began() {}, ended() {} }),
        emit: listenTo({
          "transfer-changed": () => heard.stateChanged?.(),
          "order-failed": ({ order: { action, trackingId }, fault }) =>
            void told.push(`${action} ${trackingId}: ${fault.code}`),
        }),
      };
      const state = {
        mailbox: { name: "m" },
        transfers: new KnownTransfers(),
        health: new PollHealth(),
        lookup: { stateOf: async () => "active" },
      } as unknown as MailboxState;
      const failing = new Set<string>();
      return { tools, state, told, run: () => runOrders(tools, new Map([["m", state]]), failing) };
    },
  };
}
