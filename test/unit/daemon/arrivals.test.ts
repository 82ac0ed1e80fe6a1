/** The status shows which expected transfers are missing, also if another process has seen them arrive. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { createMonitor } from "../../../src/daemon/monitor.ts";
import { openExpected } from "../../../src/mailbox/expected.ts";
import { Events } from "../../../src/model/events.ts";
import type { Expectation } from "../../../src/model/mailbox.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { mailboxSettings, redisQueue, settingsIn } from "../../support/settings.ts";

const HOUR_MS = 3_600_000;
const rule: Expectation = {
  sender: "*@bank.example",
  by: { zone: "UTC", days: [0, 1, 2, 3, 4, 5, 6], timeMs: 6 * HOUR_MS },
  withinMs: undefined,
  described: "*@bank.example by 06:00",
};
const DUE_MS = Date.parse("2026-03-04T06:00:00Z");

test("an expected transfer that another daemon has seen is no longer shown as missing", async () => {
  const { first, second, pass } = await setUp();
  await first.poll();
  expect(first.troubles()).toEqual(["ARRIVAL_MISSED"]);
  pass(HOUR_MS);
  const discovered = new Date(DUE_MS + HOUR_MS).toISOString();
  const record = makeRecord({ mailbox: "m", sender: "x@bank.example", at: { discovered } });
  second.expected.listener({ type: "transfer-discovered", record });
  await second.poll();
  await first.poll();
  expect([first.troubles(), second.troubles()]).toEqual([[], []]);
});

test("an expected transfer that a reload no longer expects is no longer shown as missing", async () => {
  const { first } = await setUp();
  await first.poll();
  expect(first.troubles()).toEqual(["ARRIVAL_MISSED"]);
  const apply = await first.expected.prepare([]);
  await apply();
  expect(first.troubles()).toEqual([]);
});

async function setUp() {
  const folder = await makeFolder();
  let nowMs = DUE_MS - 3 * 24 * HOUR_MS;
  const clock = { now: () => nowMs };
  const mailbox = mailboxSettings(
    { url: "http://127.0.0.1:9", clientId: "c" },
    { name: "m", expect: [rule] },
  );
  const ledger = { async *open() {} };
  const daemon = async () => {
    const queue = redisQueue("redis://127.0.0.1:9");
    const events = new Events();
    const monitor = await createMonitor(settingsIn(folder, [mailbox], { queue }), false, clock, events);
    const tools = { folder: join(folder, "expected"), ledger, clock, emit: events.emit };
    const expected = await openExpected(tools, [mailbox]);
    return {
      expected,
      poll: () => expected.check("m", nowMs),
      troubles: () => monitor.board.read().troubles.map(({ code }) => code),
    };
  };
  const [first, second] = [await daemon(), await daemon()];
  nowMs = DUE_MS + 1;
  return {
    first,
    second,
    pass(ms: number) {
      nowMs += ms;
    },
  };
}
