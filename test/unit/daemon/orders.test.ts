/** Orders carried out by several daemons on one inbox, and across crashes. */

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { whenAborted } from "../../../src/base/deadline.ts";
import { exists } from "../../../src/base/durable.ts";
import { Fault } from "../../../src/base/faults.ts";
import { onMachine, systemMachine } from "../../../src/base/machine.ts";
import { Outage } from "../../../src/base/outage.ts";
import { OrderRunner } from "../../../src/daemon/orders.ts";
import { coRecipientsAmong } from "../../../src/daemon/workspace.ts";
import { openInbox } from "../../../src/inbox/inbox.ts";
import { giveOrder, listOrders } from "../../../src/ledger/orders.ts";
import { ledgerPaths } from "../../../src/ledger/paths.ts";
import type { Ledger } from "../../../src/ledger/port.ts";
import { KnownTransfers } from "../../../src/mailbox/known-transfers.ts";
import { carryOut } from "../../../src/mailbox/orders.ts";
import { type MailboxState, PollHealth } from "../../../src/mailbox/state.ts";
import { listenTo } from "../../../src/model/events.ts";
import type { Action } from "../../../src/model/order.ts";
import { isHeld, type State, type TransferRecord } from "../../../src/model/record.ts";
import { mailboxIdOf } from "../../../src/model/transfer.ts";
import { readJournal } from "../../../src/operate/history.ts";
import { openPasswords } from "../../../src/passwords/passwords.ts";
import { createEmbeddedQueue } from "../../../src/queue/embedded.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { OPERATOR } from "../../support/settings.ts";
import { whileUnread } from "../../support/unread.ts";

let fixture: Awaited<ReturnType<typeof openFixture>>;
beforeEach(async () => {
  fixture = await openFixture();
});

const T1 = { mailbox: "m", trackingId: "t1" };

const CRASH = new Error("the process ends here");

test("I2 once: an order to deliver again begins one round, although two daemons carry it out", async () => {
  const [first, second] = [await fixture.daemon(), await fixture.daemon()];
  await fixture.settleAndGive("t1", "delivered", "redeliver");
  const [order] = await listOrders(fixture.work);
  await Promise.all([first, second].map(({ tools, state }) => order && carryOut(tools, state, order)));
  expect(await fixture.roundOf("t1")).toEqual([2, "discovered"]);
  await Promise.all([first.run(), second.run()]);
  expect(await fixture.roundOf("t1")).toEqual([2, "discovered"]);
  expect(await listOrders(fixture.work)).toEqual([]);
});

test("I2 once: an order to deliver again is not carried out again after a crash before its removal, if the transfer was delivered meanwhile", async () => {
  const first = await fixture.daemon();
  const given = await fixture.settleAndGive("t1", "delivered", "redeliver");
  const [order] = await listOrders(fixture.work);
  if (order !== undefined) await carryOut(first.tools, first.state, order);
  await fixture.settle("t1", "delivered");
  const second = await fixture.daemon();
  await second.run();
  expect([await fixture.roundOf("t1"), await exists(given)]).toEqual([[2, "delivered"], false]);
});

test("a discarded transfer leaves nothing behind, whenever a crash happens", async () => {
  const first = await fixture.daemon({
    stateChanged() {
      throw CRASH;
    },
  });
  await fixture.settleAndGive("t1", "quarantined", "discard");
  await first.run();
  await (await fixture.daemon()).run();
  expect(await fixture.roundOf("t1")).toEqual([2, "gone"]);
  expect(await readdir(join(fixture.work, "quarantine"))).toEqual([]);
});

test("a gone transfer that an operator acknowledged may come back; a discarded one may not, and no longer counts for a full disk", async () => {
  const daemon = await fixture.daemon();
  const { diskTrouble, ledger } = daemon.tools;
  diskTrouble.add(ledger.nameOf({ mailbox: "m", trackingId: "t2" }), new Fault("DISK_FULL"));
  await fixture.settleAndGive("t1", "gone", "discard", "not_listed");
  await daemon.run();
  const key = { mailbox: "m", trackingId: "t1" };
  expect(await ledger.find(key)).toMatchObject({ acknowledged: true, reason: "not_listed" });
  expect(diskTrouble.keys()).toHaveLength(1);
  await fixture.settleAndGive("t2", "quarantined", "discard");
  await daemon.run();
  const discarded = await ledger.find({ mailbox: "m", trackingId: "t2" });
  expect(discarded).toMatchObject({ state: "gone", reason: "discarded" });
  expect(diskTrouble.keys()).toEqual([]);
});

test("an order given during another one for the same transfer is carried out after it", async () => {
  let giving: Promise<unknown> | undefined;
  const daemon = await fixture.daemon({
    stateChanged() {
      giving ??= fixture.give("discard", "t1");
    },
  });
  await fixture.settleAndGive("t1", "quarantined", "retry");
  await daemon.run();
  await giving;
  await daemon.run();
  expect((await fixture.roundOf("t1"))[1]).toBe("gone");
  expect(await listOrders(fixture.work)).toEqual([]);
});

test("an order that cannot be carried out is reported once, and does not delay others", async () => {
  const daemon = await fixture.daemon();
  const ids = ["a", "b", "c", "d"];
  for (const id of ids) await fixture.settleAndGive(id, "quarantined", "discard");
  const [first] = await listOrders(fixture.work);
  const damaged = first?.order.trackingId ?? "";
  const name = daemon.tools.ledger.nameOf({ mailbox: "m", trackingId: damaged });
  await writeFile(ledgerPaths(fixture.work).end(name, 1), "\0\0\0\0");
  for (let look = 0; look < 3; look++) await daemon.run();
  expect(daemon.reports).toEqual([`discard ${damaged}: RECORD_UNREADABLE`]);
  expect((await listOrders(fixture.work)).map(({ order }) => order.trackingId)).toEqual([damaged]);
  for (const id of ids.filter((it) => it !== damaged)) expect((await fixture.roundOf(id))[1]).toBe("gone");
});

test("I6 no contagion: an order whose service answers too late is reported, and does not delay others", async () => {
  const daemon = await fixture.daemon();
  const late: typeof daemon.state.stateOf = async (_record, signal) => {
    await whenAborted(signal);
    throw new Fault("STOPPED", { cause: signal.reason });
  };
  Object.assign(daemon.state, { stateOf: late });
  await fixture.settleAndGive("a", "delivered", "redeliver");
  await fixture.settleAndGive("b", "quarantined", "discard");
  await fixture.settleAndGive("c", "delivered", "redeliver");
  const impatient = { ...systemMachine, setTimeout: (work: () => void) => systemMachine.setTimeout(work, 0) };
  await onMachine(impatient, () => daemon.run());
  expect((await fixture.roundOf("b"))[1]).toBe("gone");
  expect(daemon.reports).toEqual(["redeliver a: SERVICE_TIMEOUT", "redeliver c: SERVICE_TIMEOUT"]);
});

test("I6 no contagion: an order whose service does not answer delays none of another mailbox", async () => {
  const daemon = await fixture.daemon();
  const answer = Promise.withResolvers<"active">();
  Object.assign(daemon.state, { stateOf: () => answer.promise });
  await fixture.settleAndGive("a", "delivered", "redeliver");
  const running = daemon.run();
  await fixture.settle("b", "quarantined", undefined, "n");
  await fixture.give("discard", "b", "n");
  void daemon.run();
  await expect.poll(() => fixture.roundOf("b", "n")).toEqual([2, "gone"]);
  expect(await fixture.roundOf("a")).toEqual([1, "delivered"]);
  answer.resolve("active");
  await running;
  expect(await fixture.roundOf("a")).toEqual([2, "discovered"]);
});

test("orders that no daemon saw are carried out in their sequence", async () => {
  const actions: Action[] = ["retry", "discard", "retry", "discard", "retry", "discard", "retry", "retry"];
  await fixture.settle("t1", "quarantined");
  for (const action of actions) await fixture.give(action, "t1");
  const daemon = await fixture.daemon();
  await daemon.run();
  expect(daemon.acts).toEqual(actions);
});

test("orders of an earlier version are carried out in the sequence of their times", async () => {
  await fixture.settle("t1", "quarantined");
  const folder = join(fixture.work, "orders");
  await mkdir(folder, { recursive: true });
  for (const [at, action] of (["release", "retry", "discard"] as const).entries()) {
    const order = { ...T1, action, round: 1, by: OPERATOR, at: `2026-03-01T08:00:0${at}.000Z` };
    const name = `t1.0123456789abcdef0123456789abcdef~${`${9 - at}`.repeat(16)}.json`;
    await writeFile(join(folder, name), `${JSON.stringify(order)}\n`);
  }
  const daemon = await fixture.daemon();
  await daemon.run();
  expect(daemon.acts).toEqual(["release", "retry", "discard"]);
  expect([await fixture.roundOf("t1"), await listOrders(fixture.work)]).toEqual([[2, "gone"], []]);
});

test("a release is not dropped because of a later retry", async () => {
  await fixture.settle("t1", "quarantined", "CHECKSUM_MISMATCH");
  const given = [await fixture.give("release", "t1"), await fixture.give("retry", "t1")];
  const daemon = await fixture.daemon();
  await daemon.run();
  const record = await daemon.tools.ledger.find(T1);
  expect(record).toMatchObject({ round: 2, released: { by: OPERATOR.who, reason: "CHECKSUM_MISMATCH" } });
  expect(await Promise.all(given.map(exists))).toEqual([false, false]);
});

describe("an order for an open transfer is repeated if a job that read the note before overwrites it", () => {
  const retried = { reason: "retry", until: "2099-01-01T00:00:00.000Z" };
  const held = { reason: "held", heldBy: "a route" };
  const cases: [Action, object, object][] = [
    ["retry", retried, { wanted: true }],
    ["release", held, { wanted: true, allowedBy: OPERATOR.who }],
  ];

  test.each(cases)("%s", async (action, facts, expected) => {
    const daemon = await fixture.daemon();
    const { ledger } = daemon.tools;
    const waiting = await fixture.wait(ledger, facts);
    const given = await fixture.give(action, "t1");
    await daemon.run();
    expect(await ledger.find(T1)).toMatchObject(expected);
    const late = { ...waiting, attempts: 1 };
    for (let writes = 0; writes < 3; writes++) {
      ledger.note(late);
      await daemon.saw(late);
      expect(await ledger.find(T1)).toMatchObject({ ...expected, attempts: 1 });
    }
    // Another process has overwritten it: no event says so. A start finds that too.
    ledger.note(late);
    const next = await fixture.daemon();
    await ledger.flush();
    await next.run();
    expect(await next.tools.ledger.find(T1)).toMatchObject({ ...expected, attempts: 1 });
    expect(await exists(given)).toBe(true);
    // An attempt takes it into account.
    const { wanted: _wanted, ...tried } = (await next.tools.ledger.find(T1)) ?? waiting;
    next.tools.ledger.note({ ...tried, attempts: 2 });
    await next.run();
    expect((await next.tools.ledger.find(T1))?.wanted).toBeUndefined();
    // Each attempt needs the release.
    expect(await exists(given)).toBe(action === "release");
    await next.tools.ledger.end({ ...tried, state: "gone", reason: "not_listed" });
    await next.run();
    expect([await listOrders(fixture.work), await fixture.roundOf("t1")]).toEqual([[], [1, "gone"]]);
  });

  test("a release stays in force after a later retry, whichever of them was overwritten", async () => {
    const daemon = await fixture.daemon();
    const { ledger } = daemon.tools;
    const waiting = await fixture.wait(ledger, held);
    await fixture.give("release", "t1");
    await daemon.run();
    const { ordered = 0 } = (await ledger.find(T1)) ?? {};
    ledger.note({ ...waiting, ordered: ordered + 1 });
    await daemon.run();
    expect(await ledger.find(T1)).toMatchObject({ allowedBy: OPERATOR.who, ordered: ordered + 1 });
  });
});

test("a transfer that was released while a route held it is not released from quarantine", async () => {
  const daemon = await fixture.daemon();
  await fixture.wait(daemon.tools.ledger, { reason: "held", heldBy: "a route" });
  const given = await fixture.give("release", "t1");
  await daemon.tools.ledger.flush();
  await fixture.settle("t1", "quarantined", "CHECKSUM_MISMATCH");
  await daemon.run();
  expect(await fixture.roundOf("t1")).toEqual([1, "quarantined"]);
  expect([daemon.reports, await exists(given)]).toEqual([["release t1: ORDER_IMPOSSIBLE"], false]);
});

test("a discard ends a round that a job is about to deliver, and is not dropped", async () => {
  const daemon = await fixture.daemon();
  const { ledger } = daemon.tools;
  const waiting = await fixture.wait(ledger, { reason: "disk" });
  await fixture.give("discard", "t1");
  ledger.note({ ...waiting, state: "delivering" });
  await ledger.flush();
  await daemon.run();
  expect(await fixture.roundOf("t1")).toEqual([1, "gone"]);
});

test("I7 nothing silent: what the service no longer has is not delivered again, and log and journal say so", async () => {
  const daemon = await fixture.daemon();
  Object.assign(daemon.state, { stateOf: async () => "deleted_by_revocation" });
  const given = await fixture.settleAndGive("t1", "delivered", "redeliver");
  await daemon.run();
  expect(await fixture.roundOf("t1")).toEqual([1, "delivered"]);
  expect([daemon.reports, await exists(given)]).toEqual([["redeliver t1: ORDER_IMPOSSIBLE"], false]);
  const message = expect.stringContaining("t1: the service no longer has it");
  expect(await fixture.acts()).toMatchObject([{ act: "redeliver", reason: "ORDER_IMPOSSIBLE", message }]);
});

test("I7 nothing silent: an order for a transfer that a power cut has forgotten waits while it is listed, and then cannot be carried out", async () => {
  const daemon = await fixture.daemon();
  const { path } = await giveOrder(fixture.work, { ...T1, action: "discard", round: 1, by: OPERATOR });
  Object.assign(daemon.state, { stateOf: async () => "active" });
  await daemon.run();
  expect([daemon.reports, await exists(path)]).toEqual([[], true]);
  Object.assign(daemon.state, { stateOf: async () => undefined });
  await daemon.run();
  expect([daemon.reports, await exists(path)]).toEqual([["discard t1: ORDER_IMPOSSIBLE"], false]);
});

test.each(["orders", ".json"])(
  "orders that the disk does not give (%s) are not taken for none",
  async (end) => {
    const given = await fixture.settleAndGive("t1", "delivered", "redeliver");
    await expect(whileUnread(end, () => listOrders(fixture.work))).rejects.toMatchObject({ code: "EIO" });
    expect(await exists(given)).toBe(true);
    expect(await listOrders(fixture.work)).toHaveLength(1);
  },
);

test("an order that has to wait for another daemon stays", async () => {
  const given = await fixture.settleAndGive("t1", "delivered", "retry");
  await (await fixture.daemon({}, false)).run();
  expect(await exists(given)).toBe(true);
  await (await fixture.daemon({}, true)).run();
  expect(await exists(given)).toBe(false);
});

test("I7 nothing silent: the journal has each order once, although two daemons and a restart record it", async () => {
  const given = await fixture.settleAndGive("t1", "delivered", "retry");
  const [first, second] = [await fixture.daemon({}, false), await fixture.daemon({}, false)];
  for (const daemon of [first, second, first, await fixture.daemon({}, false)]) await daemon.run();
  expect(await exists(given)).toBe(true);
  const folder = join(fixture.work, "journal");
  const journal = await readFile(join(folder, (await readdir(folder))[0] ?? ""), "utf8");
  expect(journal.match(/"act":"retry"/g)).toHaveLength(3);
  const act = { act: "retry", ...OPERATOR, mailbox: "m", trackingId: "t1", sender: "a@example.org" };
  expect(await fixture.acts()).toMatchObject([act]);
});

test("a transfer whose mailbox is no longer configured is discarded, and nothing else is done with it", async () => {
  const daemon = await fixture.daemon();
  await fixture.settleAndGive("t1", "quarantined", "retry");
  await new OrderRunner(daemon.tools, new Map()).run();
  expect(await fixture.roundOf("t1")).toEqual([1, "quarantined"]);
  await fixture.give("discard", "t1");
  await new OrderRunner(daemon.tools, new Map()).run();
  expect(await fixture.roundOf("t1")).toEqual([2, "gone"]);
});

test("a transfer whose mailbox is no longer configured is left for a minute to processes that may have the mailbox", async () => {
  const { tools } = await fixture.daemon();
  await fixture.settleAndGive("t1", "quarantined", "discard");
  await new OrderRunner({ ...tools, isShared: true }, new Map()).run();
  expect(await fixture.roundOf("t1")).toEqual([1, "quarantined"]);
  const clock = { now: () => Date.now() + 61_000 };
  await new OrderRunner({ ...tools, isShared: true, clock }, new Map()).run();
  expect(await fixture.roundOf("t1")).toEqual([2, "gone"]);
});

/** One inbox with daemons that run their orders on demand. */
async function openFixture() {
  const folder = await makeFolder();
  const work = join(folder, ".inlet");
  const ledger = await ledgerIn(folder, { writer: "test" });
  const keyOf = (trackingId: string, mailbox = "m") => ({ mailbox, trackingId });
  const find = async (trackingId: string, mailbox?: string) => ledger.find(keyOf(trackingId, mailbox));
  const give = async (action: Action, trackingId: string, mailbox?: string) => {
    const record = (await find(trackingId, mailbox)) ?? { round: 1, state: "discovered" };
    const order = {
      ...keyOf(trackingId, mailbox),
      action,
      round: record.round,
      isHeld: isHeld(record),
      by: OPERATOR,
    };
    return (await giveOrder(work, order)).path;
  };
  /** Ends the open round as a worker would. */
  const settle = async (trackingId: string, state: State, reason?: string, mailbox?: string) => {
    const key = keyOf(trackingId, mailbox);
    await ledger.discover(makeRecord(key));
    const record = { ...((await find(trackingId, mailbox)) ?? makeRecord(key)), state, reason };
    if (state === "gone") return ledger.end(record);
    const stage = await ledger.stages.openStage(record);
    await writeFile(join(stage.folder, "report.pdf"), "secret");
    const end = { ...record, folder: `${trackingId}-${record.round}` };
    await ledger.stages.endWith(stage, end);
    return ledger.place(end, stage);
  };
  return {
    work,
    async roundOf(trackingId: string, mailbox?: string) {
      const found = await find(trackingId, mailbox);
      return [found?.round, found?.state];
    },
    acts: async () => (await readJournal(work, "acts", { limit: 10 })).entries,
    give,
    settle,
    /** `t1` waits. */
    async wait(of: Ledger, facts: object): Promise<TransferRecord> {
      const record = { ...makeRecord(T1), state: "waiting" as const, ...facts };
      await of.discover(record);
      of.note(record);
      await of.flush();
      return record;
    },
    async settleAndGive(trackingId: string, state: State, action: Action, reason?: string) {
      await settle(trackingId, state, reason);
      return give(action, trackingId);
    },
    /** `canRetry`: the answer of its hand-offs. */
    async daemon(listener: { stateChanged?(): void } = {}, canRetry = true) {
      const reports: string[] = [];
      const acts: string[] = [];
      const own = await ledgerIn(folder, { writer: "test" });
      const tools = {
        work,
        ledger: own,
        inbox: await openInbox(folder, join(work, "staging"), () => 0),
        passwords: await openPasswords({
          state: join(folder, "state"),
          keepMs: undefined,
          clock: systemClock,
          attempts: own.attempts,
          nameOf: (key) => own.nameOf(key),
          coRecipients: coRecipientsAmong(() => [], own),
        }),
        queue: createEmbeddedQueue({ slots: () => 1, services: () => new Map(), random: Math.random }),
        handoffs: { retry: async () => canRetry },
        clock: systemClock,
        diskTrouble: new Outage(systemClock, { began() {}, ended() {} }),
        emit: listenTo({
          "operator-acted": ({ act }) => void acts.push(act),
          "transfer-changed": () => listener.stateChanged?.(),
          "order-failed": ({ order: { action, trackingId }, fault }) =>
            void reports.push(`${action} ${trackingId}: ${fault.code}`),
        }),
      };
      const state = {
        mailbox: { name: "m" },
        transfers: new KnownTransfers(),
        health: new PollHealth(),
        stateOf: async () => "active",
      } as unknown as MailboxState;
      const other = { ...state, mailbox: { name: "n" }, transfers: new KnownTransfers() } as MailboxState;
      const states = new Map([
        [mailboxIdOf("m"), state],
        [mailboxIdOf("n"), other],
      ]);
      const runner = new OrderRunner(tools, states);
      /** A job has changed its transfer. */
      const saw = async (record: TransferRecord) => {
        runner.listener({ type: "transfer-changed", record });
        await runner.idle();
      };
      return { tools, state, reports, acts, saw, run: () => runner.run() };
    },
  };
}
