/** Orders, as several daemons carry them out on one inbox, and over crashes. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Fault } from "../../../src/base/faults.ts";
import { Outage } from "../../../src/base/outage.ts";
import { fellowsAmong } from "../../../src/daemon/fellows.ts";
import { Obeying } from "../../../src/daemon/orders.ts";
import { joinMembers } from "../../../src/inbox/members.ts";
import { openInbox } from "../../../src/inbox/open.ts";
import { carryOut } from "../../../src/mailbox/orders.ts";
import type { MailboxState } from "../../../src/mailbox/state.ts";
import type { Action } from "../../../src/model/order.ts";
import type { Receipt, ReceiptState } from "../../../src/model/receipt.ts";
import { openPasswords } from "../../../src/passwords/open.ts";
import { createEmbeddedQueue } from "../../../src/queue/embedded.ts";
import { openReceipts } from "../../../src/receipts/files.ts";
import { giveOrder, isPending, listOrders } from "../../../src/receipts/orders.ts";
import { Places } from "../../../src/receipts/places.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";

const CRASH = new Error("the process ends here");

describe("I2 once: an order to deliver again", () => {
  test("is carried out by one of two daemons that have both seen it", async () => {
    const house = await openHouse();
    const [first, second] = [await house.daemon(), await house.daemon()];
    await house.settle("t1", "delivered");
    await house.give("redeliver", "t1");
    const [[forFirst], [forSecond]] = [await first.list(), await second.list()];
    const taken = await forFirst?.take();
    expect(taken).toBeDefined();
    if (taken !== undefined) await carryOut(first.tools, first.state, taken.order);
    await taken?.done();
    await house.settle("t1", "delivered");
    expect(await forSecond?.take()).toBeUndefined();
    await second.obey();
    expect(await house.stateOf("t1")).toBe("delivered");
  });

  test("is not carried out again where a crash came before it was taken away, and it was delivered meanwhile", async () => {
    const house = await openHouse();
    const first = await house.daemon();
    await house.settle("t1", "delivered");
    const given = await house.give("redeliver", "t1");
    const [order] = await first.list();
    const taken = await order?.take();
    if (taken !== undefined) await carryOut(first.tools, first.state, taken.order);
    await first.crash();
    expect(await house.stateOf("t1")).toBe("discovered");
    await house.settle("t1", "delivered");
    const second = await house.daemon();
    await second.obey();
    expect([await house.stateOf("t1"), await isPending(given)]).toEqual(["delivered", false]);
  });

  test("is taken over from one that died before it could begin, and from nobody who lives", async () => {
    const house = await openHouse();
    const [first, second] = [await house.daemon(), await house.daemon()];
    await house.settle("t1", "delivered");
    await house.give("redeliver", "t1");
    const [order] = await first.list();
    expect(await order?.take()).toBeDefined();
    await second.obey();
    expect(await house.stateOf("t1")).toBe("delivered");
    await first.crash();
    await second.obey();
    expect(await house.stateOf("t1")).toBe("discovered");
  });
});

test("what is discarded leaves nothing behind, wherever a crash comes", async () => {
  const house = await openHouse();
  const first = await house.daemon({
    stateChanged() {
      throw CRASH;
    },
  });
  await house.settle("t1", "quarantined");
  await house.give("discard", "t1");
  await first.obey();
  await first.crash();
  expect(await house.stateOf("t1")).toBe("gone");
  expect(await readdir(join(house.work, "quarantine"))).toEqual([]);
});

test("what is discarded lacks no room any more", async () => {
  const house = await openHouse();
  const daemon = await house.daemon();
  await house.settle("t1", "quarantined");
  const { diskFull, receipts } = daemon.tools;
  diskFull.meets(receipts.folderName({ mailbox: "m", trackingId: "t1" }), new Fault("DISK_FULL"));
  await house.give("discard", "t1");
  await daemon.obey();
  expect(diskFull.those()).toEqual([]);
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
  await daemon.obey();
  await house.given();
  await daemon.obey();
  expect(await house.stateOf("t1")).toBe("gone");
  expect(await readdir(join(house.work, "orders"))).toEqual([]);
});

test("an order that cannot be carried out is told once, and keeps no other back", async () => {
  const house = await openHouse();
  const daemon = await house.daemon();
  const ids = ["a", "b", "c", "d"];
  for (const id of ids) {
    await house.settle(id, "quarantined");
    await house.give("discard", id);
  }
  const [first] = await daemon.list();
  const damaged = first?.order.trackingId ?? "";
  await writeFile(new Places(house.work).donePathOf({ mailbox: "m", trackingId: damaged }), "\0\0\0\0");
  for (let look = 0; look < 3; look++) await daemon.obey();
  expect(daemon.told).toEqual([`discard ${damaged}: RECEIPT_UNREADABLE`]);
  expect((await daemon.list()).map(({ order }) => order.trackingId)).toEqual([damaged]);
  for (const id of ids.filter((it) => it !== damaged)) expect(await house.stateOf(id)).toBe("gone");
});

test("an order that only another daemon can carry out is left for that one", async () => {
  const house = await openHouse();
  const [first, second] = [await house.daemon(), await house.daemon({}, true)];
  await house.settle("t1", "delivered");
  const given = await house.give("retry", "t1");
  await first.obey();
  expect(await isPending(given)).toBe(true);
  await second.obey();
  expect(await isPending(given)).toBe(false);
});

/** One inbox, and daemons on it that look when they are told to. `isOwner`: hand-offs are this daemon's own. */
async function openHouse() {
  const folder = await makeFolder();
  const work = join(folder, "work");
  const receipts = await openReceipts(work, { alone: false, host: "h" });
  const keyOf = (trackingId: string) => ({ mailbox: "m", trackingId });
  const stateOf = async (trackingId: string) => (await receipts.find(keyOf(trackingId)))?.state;
  const give = async (action: Action, trackingId: string) =>
    giveOrder(work, { ...keyOf(trackingId), action, fence: (await receipts.find(keyOf(trackingId)))?.fence });
  let giving: Promise<unknown> = Promise.resolve();
  return {
    work,
    stateOf,
    give,
    giveNow(action: Action, trackingId: string) {
      giving = give(action, trackingId);
    },
    given: () => giving,
    /** What a worker makes of it in the end. */
    async settle(trackingId: string, state: ReceiptState) {
      const key = keyOf(trackingId);
      await receipts.create(makeReceipt(key), undefined);
      const found = (await receipts.find(key)) ?? makeReceipt(key);
      const enter = (receipt: Receipt, next: ReceiptState): Receipt => ({ ...receipt, state: next });
      let current = await receipts.claim(found, (receipt) => enter(receipt, "collecting"));
      for (const next of state === "delivered" ? (["delivering", state] as const) : [state]) {
        if (current !== undefined) await receipts.put(enter(current, next), current);
        current = await receipts.find(key);
      }
      if (state !== "quarantined") return;
      await mkdir(join(work, "quarantine", receipts.folderName(key)), { recursive: true });
      await writeFile(join(work, "quarantine", receipts.folderName(key), "report.pdf"), "secret");
    },
    async daemon(heard: { stateChanged?(): void } = {}, isOwner = false) {
      const members = await joinMembers(work, "");
      const told: string[] = [];
      const tools = {
        work,
        members,
        receipts,
        inbox: await openInbox(folder, work, 0, members),
        passwords: await openPasswords({
          state: join(folder, "state"),
          nowMs: 0,
          fellows: fellowsAmong(() => [], receipts),
          sharedTurns: undefined,
        }),
        queue: createEmbeddedQueue({ places: 1, random: Math.random }),
        handoffs: { retry: async () => isOwner },
        clock: systemClock,
        diskFull: new Outage(systemClock, { began() {}, ended() {} }),
        watch: {
          acknowledged: () => {},
          stateChanged: () => heard.stateChanged?.(),
          orderFailed: (
            { action, trackingId }: { action: Action; trackingId: string },
            { code }: Error & { code: string },
          ) => void told.push(`${action} ${trackingId}: ${code}`),
        },
      };
      const state = {
        mailbox: { name: "m" },
        undelivered: new Map(),
        settled: new Set(),
      } as unknown as MailboxState;
      const obeying = new Obeying(tools, new Map([["m", state]]));
      let isThere = true;
      const crash = async () => {
        if (isThere) await members.leave();
        isThere = false;
      };
      onTestFinished(crash);
      return { tools, state, told, obey: () => obeying.look(), crash, list: () => listOrders(work, members) };
    },
  };
}
