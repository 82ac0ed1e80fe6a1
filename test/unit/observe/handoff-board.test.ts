import { expect, test } from "vitest";
import { HandoffBoard } from "../../../src/observe/handoff-board.ts";

const FACTS = {
  mailbox: "m",
  sender: "a@example.org",
  round: 1,
  folder: "m/t",
  deliveredAt: "2026-03-01T08:00:00.000Z",
};
const t1 = { ...FACTS, trackingId: "t1" };
const t2 = { ...FACTS, trackingId: "t2; rm -r /" };

test("a failed hand-off, or a folder that is not picked up, is shown with advice until it is resolved", () => {
  const board = new HandoffBoard();
  board.tried(t1, "command", { message: "It failed", willRetry: true });
  board.tried(t1, "webhook", { message: "It was refused", willRetry: false });
  board.setOverdue(t2, true);
  expect(board.list()).toMatchObject([
    {
      trackingId: "t1",
      state: "delivered",
      reason: "handoff",
      message:
        "It failed. Inlet will try it again; inlet retry t1 tries it at once. It was refused. It was given up; inlet retry t1 tries it again.",
    },
    { reason: "not-picked-up", message: "m/t was not picked up yet." },
  ]);
  board.tried(t1, "command");
  board.tried(t1, "webhook");
  board.setOverdue(t2, false);
  expect(board.list()).toEqual([]);
  board.tried(t2, "command", { message: "It failed", willRetry: false });
  expect(board.list()[0]?.message).toBe(
    "It failed. It was given up; inlet retry -- 't2; rm -r /' tries it again.",
  );
});

test("two failing deliveries of one transfer are shown as two", () => {
  const board = new HandoffBoard();
  const second = { ...t1, round: 2, folder: "m/t-2" };
  board.tried(t1, "command", { message: "It failed", willRetry: true });
  board.setOverdue(second, true);
  expect(board.list().map(({ reason }) => reason)).toEqual(["handoff", "not-picked-up"]);
  expect(board.total).toBe(2);
  board.setOverdue(second, false);
  expect(board.list().map(({ reason }) => reason)).toEqual(["handoff"]);
});

test("I8 bounded: each check replaces the list, which is cut", () => {
  const board = new HandoffBoard();
  for (let at = 0; at < 2_000; at++) board.setOverdue({ ...FACTS, trackingId: `t${at}` }, true);
  expect(board.list()).toHaveLength(1_000);
  const troubles = [{ ...t1, failed: [], isOverdue: true }];
  board.checked({ waiting: 1, oldestMs: 0, troubled: 5, troubles });
  expect([board.list().map(({ trackingId }) => trackingId), board.total]).toEqual([["t1"], 5]);
});
