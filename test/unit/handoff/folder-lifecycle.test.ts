/** The next action for a delivered folder, by its entry and its status. */
import { expect, test } from "vitest";
import { nextAction } from "../../../src/handoff/folder-lifecycle.ts";
import { EMPTY_ENTRY, type Entry } from "../../../src/model/outbox.ts";
import { followingWith, type HandoffTask, makeHandoff } from "../../support/handoff.ts";

const DAY_MS = 24 * 3_600_000;
const DELIVERED = "2026-03-01T08:00:00.000Z";
const NOW = { atMs: Date.parse(DELIVERED) + 10 * DAY_MS, uptimeMs: 20 * DAY_MS, isClockRight: true };
const KEEP = { keep: { pickedUpMs: DAY_MS, notPickedUpMs: DAY_MS } };
const OLD = { foundOld: { atMs: NOW.atMs - DAY_MS, uptimeMs: NOW.uptimeMs - DAY_MS } };
const PICKED_UP = { pickedUpAt: DELIVERED, how: "acknowledged" } as const;
const PENDING = { command: { state: "pending", attempts: 0 } } as const;
const FAILED = { command: { state: "failed", attempts: 9, error: "no" } } as const;
const COMMAND: HandoffTask = { command: ["true"] };

type FolderStatus = Parameters<typeof nextAction>[1];

test.each<[string, Partial<Entry>, FolderStatus, HandoffTask, string]>([
  ["a folder that is there waits", {}, "there", {}, "none"],
  ["a folder that is gone was taken", {}, "gone", {}, "picked-up"],
  ["an acknowledged folder was picked up", {}, "acknowledged", {}, "picked-up"],
  ["nothing is concluded from an unknown status", { isRemoving: true }, "unknown", KEEP, "none"],
  ["a late pick-up is reported", {}, "there", { expectWithinMs: DAY_MS }, "overdue"],
  ["a late pick-up is reported once", { reported: true }, "there", { expectWithinMs: DAY_MS }, "none"],
  ["an old folder is noted first", {}, "there", KEEP, "change"],
  ["an old folder is removed then", OLD, "there", KEEP, "remove"],
  ["a folder with a pending step stays", { ...OLD, ...PENDING }, "there", { ...KEEP, ...COMMAND }, "none"],
  ["a folder with a failed step goes", { ...OLD, ...FAILED }, "there", { ...KEEP, ...COMMAND }, "remove"],
  ["a changed folder stays", { isForeign: true }, "there", KEEP, "none"],
  ["an acknowledged folder is kept for its time", { ...OLD, ...PICKED_UP }, "acknowledged", KEEP, "remove"],
  ["an acknowledged folder stays without a time", PICKED_UP, "acknowledged", {}, "finish"],
  ["a picked-up delivery ends when its folder is gone", PICKED_UP, "gone", KEEP, "finish"],
  ["a picked-up delivery waits for its steps", { ...PICKED_UP, ...FAILED }, "gone", COMMAND, "none"],
  ["a removal that is done is noticed", { isRemoving: true }, "gone", KEEP, "gone"],
  ["a removal goes on", { ...OLD, isRemoving: true }, "there", KEEP, "remove"],
  ["a removal is called off", { ...OLD, isRemoving: true }, "there", {}, "change"],
  ["an acknowledgement calls a removal off", { ...OLD, isRemoving: true }, "acknowledged", KEEP, "change"],
])("%s", (_, facts, status, task, expected) => {
  const move = nextAction(
    { ...EMPTY_ENTRY, ...facts },
    status,
    DELIVERED,
    followingWith(makeHandoff(task)),
    NOW,
  );
  expect(move.type === "change" ? (move.event ?? move.type) : move.type).toBe(expected);
});

test("no folder is removed by a clock that cannot be trusted", () => {
  const now = { ...NOW, isClockRight: false };
  expect(
    nextAction({ ...EMPTY_ENTRY, ...OLD }, "there", DELIVERED, followingWith(makeHandoff(KEEP)), now).type,
  ).toBe("none");
});
