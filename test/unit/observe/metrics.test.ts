import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Board } from "../../../src/observe/board.ts";
import { Metrics } from "../../../src/observe/metrics.ts";

const FACTS = { program: "1", host: "h", pid: 1, queue: "embedded", role: "all", inbox: "/inbox" } as const;

test("tells how many expected transfers of a mailbox did not come, and that they came after all", async () => {
  const mailboxes = ["m", "n"].map((name) => ({ name, email: name, pollMs: 60_000, paused: false }));
  const board = new Board(FACTS, mailboxes, systemClock);
  const gauged = { status: () => board.read(), freeBytes: async () => 0, queueDepth: async () => 0 };
  const metrics = new Metrics(["m", "n"], "1", gauged, systemClock);
  const read = async () => (await metrics.text()).match(/^inlet_expected_missing\{.*$/gm);
  board.missed("m", "*@bank.example by 06:00", Date.now());
  board.missed("m", "*@bank.example by 12:00", Date.now());
  expect(await read()).toEqual([
    'inlet_expected_missing{mailbox="m"} 2',
    'inlet_expected_missing{mailbox="n"} 0',
  ]);
  board.arrived("m", "*@bank.example by 06:00");
  board.arrived("m", "*@bank.example by 12:00");
  expect((await read())?.[0]).toBe('inlet_expected_missing{mailbox="m"} 0');
});
