import { describe, expect, test } from "vitest";
import {
  dueSteps,
  failedSteps,
  formatEntry,
  idOf,
  isCurrent,
  isDelivered,
  makeEntry,
  parseEntry,
} from "../../../src/handoff/entry.ts";
import { handoffOf } from "../../support/handoff.ts";
import { makeReceipt } from "../../support/receipt.ts";

const NOW = Date.parse("2026-03-01T08:05:00.000Z");
const HANDOFF = handoffOf({
  command: ["true"],
  webhook: "https://hooks.example.com/",
  acknowledgement: "CONFIGURED-SINCE",
});
const delivering = makeReceipt({
  state: "delivering",
  folder: "m/t1",
  verified: "all",
  acknowledgement: "OK",
  at: { delivering: "2026-03-01T08:04:00.000Z" },
});
const entry = makeEntry(delivering, HANDOFF, NOW);

describe("a hand-off", () => {
  test("is the same after it was written and read", () => {
    expect(parseEntry(formatEntry(entry))).toEqual(entry);
    expect(entry).toMatchObject({ folder: "m/t1", verified: "all", acknowledgement: "OK", reported: false });
  });

  test("knows no acknowledgement where no name was kept free for it", () => {
    const bare = makeEntry({ ...delivering, acknowledgement: undefined }, HANDOFF, NOW);
    expect(bare.acknowledgement).toBeUndefined();
  });

  test.each(["", "{", "[]", '{"version":2}', formatEntry(entry).slice(0, 50)])(
    "is not guessed from %j",
    (text) => {
      expect(parseEntry(text)).toBeUndefined();
    },
  );

  test("has an id that follows from the delivery, whoever resumes it, and another one for another delivery", () => {
    expect(idOf({ ...delivering, fence: 7, attempts: 3, state: "delivered" })).toBe(entry.id);
    const again = { ...delivering, at: { delivering: "2026-03-02T08:04:00.000Z" } };
    const others = [again, { ...delivering, folder: "m/t1-2" }, { ...delivering, mailbox: "n" }];
    expect(new Set([entry.id, ...others.map(idOf)]).size).toBe(4);
  });

  test("waits for its receipt to say delivered, and knows when that speaks of a later delivery", () => {
    const delivered = { ...delivering, state: "delivered" } as const;
    const later = { ...delivering, at: { delivering: "2026-03-02T08:04:00.000Z" } };
    expect([delivering, delivered, later].map((receipt) => isDelivered(entry, receipt))).toEqual([
      false,
      true,
      true,
    ]);
    const receipts = [
      delivered,
      { ...delivered, state: "collected" } as const,
      { ...later, state: "delivered" } as const,
    ];
    expect(receipts.map((receipt) => isCurrent(entry, receipt))).toEqual([true, true, false]);
  });

  test("has steps that are due when their time has come, as long as they are configured", () => {
    const nextAt = new Date(NOW + 1).toISOString();
    const failed = { state: "failed", attempts: 9, error: "no" } as const;
    const tried = { ...entry, command: { state: "pending", attempts: 1, nextAt, error: "no" } as const };
    expect(dueSteps(entry, HANDOFF, NOW)).toEqual(["command", "webhook"]);
    expect(dueSteps(tried, HANDOFF, NOW)).toEqual(["webhook"]);
    expect(dueSteps(tried, HANDOFF, NOW + 1)).toEqual(["command", "webhook"]);
    expect(dueSteps({ ...entry, command: failed }, HANDOFF, NOW)).toEqual(["webhook"]);
    expect(dueSteps(entry, handoffOf({}), NOW)).toEqual([]);
    expect(failedSteps({ ...tried, webhook: failed }, HANDOFF)).toEqual([
      { step: "command", message: "no", willRetry: true },
      { step: "webhook", message: "no", willRetry: false },
    ]);
  });
});
