/** What the page says of expected transfers is what is known of them, whoever learnt it. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { createDesk } from "../../../src/daemon/desk.ts";
import { openExpected } from "../../../src/mailbox/expected.ts";
import type { Expectation } from "../../../src/model/mailbox.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { mailboxSettings, redisQueue, settingsIn, watchWith } from "../../support/settings.ts";

const HOUR_MS = 3_600_000;
const rule: Expectation = {
  sender: "*@bank.example",
  by: { zone: "UTC", days: [0, 1, 2, 3, 4, 5, 6], timeMs: 6 * HOUR_MS },
  withinMs: undefined,
  described: "*@bank.example by 06:00",
};
const DUE_MS = Date.parse("2026-03-04T06:00:00Z");

test("an expected transfer that another daemon saw come is not missed any more", async () => {
  const { first, second, pass } = await setUp();
  await first.poll();
  expect(first.troubles()).toEqual(["ARRIVAL_MISSED"]);
  pass(HOUR_MS);
  const discovered = new Date(DUE_MS + HOUR_MS).toISOString();
  second.expected.discovered(makeRecord({ mailbox: "m", sender: "x@bank.example", at: { discovered } }));
  await second.poll();
  await first.poll();
  expect([first.troubles(), second.troubles()]).toEqual([[], []]);
});

test("an expected transfer that nobody waits for any more, after a reload, is not missed any more", async () => {
  const { first, open } = await setUp();
  await first.poll();
  expect(first.troubles()).toEqual(["ARRIVAL_MISSED"]);
  first.desk.showOverdue((await open([])).overdue());
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
  const open = (mailboxes: readonly (typeof mailbox)[]) =>
    openExpected({ folder: join(folder, "expected"), ledger, clock, watch: watchWith() }, mailboxes);
  const daemon = async () => {
    const queue = redisQueue("redis://127.0.0.1:9");
    const desk = await createDesk(settingsIn(folder, [mailbox], { queue }), clock);
    const expected = await open([mailbox]);
    return {
      desk,
      expected,
      async poll() {
        await expected.check("m", nowMs);
        desk.showOverdue(expected.overdue());
      },
      troubles: () => desk.vitals.status().troubles.map(({ code }) => code),
    };
  };
  const [first, second] = [await daemon(), await daemon()];
  nowMs = DUE_MS + 1;
  return {
    first,
    second,
    open,
    pass(ms: number) {
      nowMs += ms;
    },
  };
}
