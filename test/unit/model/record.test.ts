import { expect, test } from "vitest";
import { expiryOf, UNKNOWN_EXPIRY_MS, waitLeftMs } from "../../../src/model/record.ts";

const NOW_MS = Date.parse("2026-03-01T00:00:00Z");

test.each([
  ["2026-03-01T12:00:00Z", 12 * 3_600_000],
  ["2026-02-28T00:00:00Z", undefined],
  // Recorded while the clock was wrong.
  ["2036-03-01T00:00:00Z", undefined],
  ["no time at all", undefined],
  [undefined, undefined],
])("a transfer that waits until %s is kept back for %s ms", (until, leftMs) => {
  expect(waitLeftMs({ state: "waiting", reason: "locked", until }, NOW_MS)).toBe(leftMs);
  expect(waitLeftMs({ state: "discovered", reason: undefined, until }, NOW_MS)).toBeUndefined();
});

test("an unknown expiry is after every known one, and still a date", () => {
  expect(expiryOf({ expires: "2026-03-01T00:00:00Z" })).toBe(NOW_MS);
  expect(expiryOf({ expires: undefined })).toBe(UNKNOWN_EXPIRY_MS);
  expect(new Date(UNKNOWN_EXPIRY_MS).toISOString()).toBe("+275760-09-13T00:00:00.000Z");
});
