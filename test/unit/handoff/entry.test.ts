import { describe, expect, test } from "vitest";
import {
  dueSteps,
  EMPTY_ENTRY,
  type Entry,
  failedSteps,
  formatEntry,
  kindOf,
  needsDurability,
  newEntry,
  parseEntry,
} from "../../../src/handoff/entry.ts";
import { deliveryId } from "../../../src/model/manifest.ts";
import { type HandoffTask, makeHandoff } from "../../support/handoff.ts";

const NOW = Date.parse("2026-03-01T08:05:00.000Z");
const HANDOFF = makeHandoff({ command: ["true"], webhook: "https://hooks.example.com/" });
const PICKED_UP = { pickedUpAt: "2026-03-01T08:04:00.000Z" };
const entry = newEntry(HANDOFF);

describe("an outbox entry", () => {
  test("is the same after it was written and read", () => {
    const full: Entry = { ...entry, ...PICKED_UP, how: "taken", folder: "m/t1-2", reported: true };
    expect(parseEntry(formatEntry(full))).toEqual(full);
  });

  test.each(["", "{", "[]", '{"version":2}', formatEntry(entry).slice(0, 50)])(
    "is not guessed from %j",
    (text) => {
      expect(parseEntry(text)).toBeUndefined();
    },
  );

  test("has due steps when their time has come, as long as they are configured", () => {
    const nextAt = new Date(NOW + 1).toISOString();
    const failed = { state: "failed", attempts: 9, error: "no" } as const;
    const tried = { ...entry, command: { state: "pending", attempts: 1, nextAt, error: "no" } as const };
    expect(dueSteps(entry, HANDOFF, NOW)).toEqual(["command", "webhook"]);
    expect(dueSteps(tried, HANDOFF, NOW)).toEqual(["webhook"]);
    expect(dueSteps(tried, HANDOFF, NOW + 1)).toEqual(["command", "webhook"]);
    // The wait was recorded by a clock that was a month ahead.
    expect(dueSteps(tried, HANDOFF, NOW - 30 * 86_400_000)).toEqual(["command", "webhook"]);
    expect(dueSteps({ ...entry, command: failed }, HANDOFF, NOW)).toEqual(["webhook"]);
    expect(dueSteps(entry, makeHandoff({}), NOW)).toEqual([]);
    expect(failedSteps({ ...tried, webhook: failed }, HANDOFF)).toEqual([
      { step: "command", message: "no", willRetry: true },
      { step: "webhook", message: "no", willRetry: false },
    ]);
  });

  test.each<[string, Partial<Entry>, HandoffTask, string]>([
    ["only waits", {}, {}, "wait"],
    ["has an open step", { command: { state: "pending", attempts: 0 } }, { command: ["true"] }, "json"],
    ["has a failed step", { command: { state: "failed", attempts: 9 } }, { command: ["true"] }, "json"],
    ["has done its step", { command: { state: "done", attempts: 1 } }, { command: ["true"] }, "wait"],
    ["has a step that is not configured", { command: { state: "pending", attempts: 0 } }, {}, "wait"],
    ["is overdue", { reported: true }, {}, "json"],
    ["was picked up", { ...PICKED_UP, reported: true }, {}, "kept"],
    [
      "was picked up with an open step",
      { ...PICKED_UP, command: { state: "pending", attempts: 0 } },
      { command: ["true"] },
      "json",
    ],
  ])("that %s says so by its name", (_, facts, task, kind) => {
    expect(kindOf({ ...EMPTY_ENTRY, ...facts }, makeHandoff(task))).toBe(kind);
  });

  test.each<[HandoffTask, string | undefined, boolean]>([
    [{}, undefined, false],
    [{}, "DONE", true],
    [{ command: ["true"] }, undefined, true],
    [{ webhook: "https://hooks.example.com/" }, undefined, true],
    [{ expectWithinMs: 1 }, undefined, true],
    [{ keep: { pickedUpMs: 1 } }, undefined, true],
    [{ keep: { notPickedUpMs: 1 } }, undefined, true],
  ])("with %j and acknowledgement %j survives a power cut: %j", (task, acknowledgement, isNeeded) => {
    const record = { acknowledgement, placement: undefined };
    expect(needsDurability(makeHandoff(task), record)).toBe(isNeeded);
  });

  test("of a delivery with a placement survives a power cut: it leads to the placement", () => {
    const record = { acknowledgement: undefined, placement: "files" } as const;
    expect(needsDurability(makeHandoff({}), record)).toBe(true);
  });
});

test("a delivery has the same id in every process, and a redelivery has another", () => {
  expect(deliveryId("t1.ab", 1)).toMatch(/^[0-9a-f]{32}$/);
  expect(deliveryId("t1.ab", 1)).toBe(deliveryId("t1.ab", 1));
  expect(new Set([deliveryId("t1.ab", 1), deliveryId("t1.ab", 2), deliveryId("t2.ab", 1)]).size).toBe(3);
});
