import { describe, expect, test } from "vitest";
import { dueSteps, failedSteps, kindOf, needsDurability, newEntry } from "../../../src/handoff/entry.ts";
import { deliveryId } from "../../../src/model/manifest.ts";
import { EMPTY_ENTRY, type Entry, formatEntry, parseEntry } from "../../../src/model/outbox.ts";
import { Clocks } from "../../support/clocks.ts";
import { followingWith, type HandoffTask, makeHandoff } from "../../support/handoff.ts";
import { recordOf } from "./bench.ts";

const NOW = Date.parse("2026-03-01T08:05:00.000Z");
const BOTH = makeHandoff({ command: ["true"], webhook: "https://hooks.example.com/" });
const FOLLOWING = followingWith(BOTH);
const PICKED_UP = { pickedUpAt: "2026-03-01T08:04:00.000Z" };
const OPEN_STEP = { command: { state: "pending", attempts: 0 } } as const;
const entry = newEntry(FOLLOWING.steps);

describe("an outbox entry", () => {
  test("is the same after it was written and read", () => {
    const full: Entry = { ...entry, ...PICKED_UP, how: "taken", reported: true };
    expect(parseEntry(formatEntry(full), "json")).toEqual(full);
  });

  test.each(["", "{", "[]", '{"version":2}', formatEntry(entry).slice(0, 50)])(
    "is not guessed from %j",
    (text) => {
      expect(parseEntry(text, "json")).toBeUndefined();
    },
  );

  test("has due steps when their time has come, as long as they are configured", () => {
    const nextAt = new Date(NOW + 1).toISOString();
    const failed = { state: "failed", attempts: 9, error: "no" } as const;
    const tried = { ...entry, command: { state: "pending", attempts: 1, nextAt, error: "no" } as const };
    expect(dueSteps("t~1", entry, FOLLOWING, NOW)).toEqual(["command", "webhook"]);
    const clocks = new Clocks(NOW);
    const due = () => clocks.run(() => dueSteps("t~1", tried, FOLLOWING, clocks.wallMs));
    expect(due()).toEqual(["webhook"]);
    // While the process lives, a clock that is set changes nothing.
    clocks.wallMs -= 30 * 86_400_000;
    expect(due()).toEqual(["webhook"]);
    clocks.pass(1);
    expect(due()).toEqual(["command", "webhook"]);
    // Another process finds that the wait was recorded by a clock that was a month ahead.
    clocks.restart();
    expect(due()).toEqual(["command", "webhook"]);
    expect(dueSteps("t~1", { ...entry, command: failed }, FOLLOWING, NOW)).toEqual(["webhook"]);
    expect(dueSteps("t~1", entry, { ...FOLLOWING, handoff: makeHandoff({}) }, NOW)).toEqual([]);
    // An entry that an attempt without these steps has made.
    expect(dueSteps("t~1", EMPTY_ENTRY, FOLLOWING, NOW)).toEqual(["command", "webhook"]);
    // The configuration has more than was decided.
    expect(dueSteps("t~1", EMPTY_ENTRY, { ...FOLLOWING, steps: [] }, NOW)).toEqual([]);
    expect(failedSteps({ ...tried, webhook: failed }, FOLLOWING)).toEqual([
      { step: "command", message: "no", willRetry: true },
      { step: "webhook", message: "no", willRetry: false },
    ]);
  });

  test.each<[string, Partial<Entry>, HandoffTask, string]>([
    ["only waits", {}, {}, "wait"],
    ["has an open step", OPEN_STEP, { command: ["true"] }, "json"],
    ["has a failed step", { command: { state: "failed", attempts: 9 } }, { command: ["true"] }, "json"],
    ["has done its step", { command: { state: "done", attempts: 1 } }, { command: ["true"] }, "wait"],
    ["has a step that is not configured", OPEN_STEP, {}, "wait"],
    ["is overdue", { reported: true }, {}, "json"],
    ["was picked up", { ...PICKED_UP, reported: true }, {}, "kept"],
    ["was picked up with an open step", { ...PICKED_UP, ...OPEN_STEP }, { command: ["true"] }, "json"],
  ])("that %s says so by its name", (_, facts, task, kind) => {
    expect(kindOf({ ...EMPTY_ENTRY, ...facts }, followingWith(makeHandoff(task)))).toBe(kind);
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
    const handoff = makeHandoff(task);
    const { steps } = followingWith(handoff);
    expect(needsDurability(handoff, recordOf("t1", { acknowledgement, steps }))).toBe(isNeeded);
  });

  test("of a delivery with a placement survives a power cut: it leads to the placement", () => {
    expect(needsDurability(makeHandoff({}), recordOf("t1", { placement: "files" }))).toBe(true);
  });

  test.each(["route", "mailbox"] as const)(
    "whose %s is gone keeps its steps open, runs none of them, and needs a person",
    (owner) => {
      const gone = {
        ...FOLLOWING,
        handoff: { ...makeHandoff({}), gone: { command: owner, webhook: owner } },
      };
      expect(dueSteps("t~1", entry, gone, NOW)).toEqual([]);
      expect(kindOf(entry, gone)).toBe("json");
      expect(failedSteps(entry, gone).map(({ step, willRetry }) => [step, willRetry])).toEqual([
        ["command", false],
        ["webhook", false],
      ]);
    },
  );
});

test("a delivery has the same id in every process, and a redelivery has another", () => {
  expect(deliveryId("t1.ab", 1)).toMatch(/^[0-9a-f]{32}$/);
  expect(deliveryId("t1.ab", 1)).toBe(deliveryId("t1.ab", 1));
  expect(new Set([deliveryId("t1.ab", 1), deliveryId("t1.ab", 2), deliveryId("t2.ab", 1)]).size).toBe(3);
});
