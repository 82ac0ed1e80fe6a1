/** Orders of operators keep their sequence, and are not lost to a job that runs: real processes, on both engines. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { giveOrder, listOrders } from "../../src/ledger/orders.ts";
import { mailboxKeys } from "../support/installation.ts";
import { openSite } from "../support/operator.ts";
import { startRedis } from "../support/redis.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX, OPERATOR } from "../support/settings.ts";

const LOCKED = { kind: "error", status: 423, errorCode: 2005 } as const;
/** A command has to start within this time. */
const SLOW = { kind: "stall", seconds: 8 } as const;
const WRONG = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];
const T1 = { transfers: [transferPlan({ trackingId: "t1" })] };
const LONG_MS = { timeout: 60_000 };

describe("with the embedded queue", () => testEngine(async () => "embedded"));

describe("with a queue on Redis", { tags: ["system"] }, () =>
  testEngine(async () => (await startRedis()).url),
);

function testEngine(openQueue: () => Promise<string>): void {
  test("a retry that is given while a job of its transfer runs is followed by an attempt", async () => {
    const { run, states, expectInlet, deliveries, simulator } = await openSite(T1, {
      queue: await openQueue(),
    });
    simulator.addFault({ on: "info", does: LOCKED });
    await run();
    await expect.poll(states, LONG_MS).toEqual({ t1: "waiting" });
    for (const does of [SLOW, LOCKED]) simulator.addFault({ on: "info", does });
    await expectInlet("retry t1 --no-wait", 0, "");
    await expect.poll(() => simulator.totals().info, LONG_MS).toBe(2);
    await expectInlet("retry t1 --no-wait", 0, "");
    expect(simulator.totals().info).toBe(2);
    await expect.poll(deliveries, LONG_MS).toEqual(["t1"]);
  });

  test("a release that is given while a job holds the transfer again is followed by its delivery", async () => {
    const queue = await openQueue();
    const holding = (name: string) => ({
      queue,
      mailboxes: [{ ...mailboxKeys(MAILBOX), routes: [{ name, file: "*", action: "hold" }] }],
    });
    const { inbox, run, states, deliveries, simulator, rewrite } = await openSite(T1, holding("first"));
    await run();
    await expect.poll(states, LONG_MS).toEqual({ t1: "waiting" });
    const before = simulator.totals().info;
    simulator.addFault({ on: "info", does: SLOW });
    await rewrite(holding("second"));
    await expect.poll(() => simulator.totals().info, LONG_MS).toBe(before + 1);
    // The command looked at the transfer a moment ago.
    const order = { action: "release", mailbox: MAILBOX, trackingId: "t1", round: 1, isHeld: true } as const;
    await giveOrder(join(inbox, ".inlet"), { ...order, by: OPERATOR });
    expect(simulator.totals().info).toBe(before + 1);
    await expect.poll(deliveries, LONG_MS).toEqual(["t1"]);
  });

  test("eight orders without a daemon are carried out in their sequence by the next start", async () => {
    const ids = ["t1", "t2"];
    const { inbox, inlet, journal, expectInlet, deliveries } = await openSite(
      { transfers: ids.map((trackingId) => transferPlan({ trackingId, files: WRONG })) },
      { queue: await openQueue() },
    );
    await inlet("once");
    const orders = ["release t1", "retry t1", "retry t2", "retry t2", "release t2", "discard t2", "retry t1"];
    for (const line of [...orders, "release t1"])
      await expectInlet(`${line} --no-wait${line.startsWith("retry") ? "" : " --yes"}`, 0, "");
    const given = (await listOrders(join(inbox, ".inlet"))).map(
      ({ order }) => `${order.action} ${order.trackingId}`,
    );
    expect(given).toEqual([...orders, "release t1"]);
    await inlet("once");
    expect(await deliveries()).toEqual(["t1"]);
    const lines = (await journal()).split("\n").filter((line) => line.includes('"act":'));
    const acts = lines.map((line) => JSON.parse(line) as { act: string; trackingId: string; given: string });
    const of = (id: string, all: readonly string[]) => all.filter((each) => each.endsWith(id));
    const done = acts.map(({ act, trackingId }) => `${act} ${trackingId}`);
    for (const id of ids) expect(of(id, done)).toEqual(of(id, given));
    expect(await listOrders(join(inbox, ".inlet"))).toEqual([]);
  });
}
