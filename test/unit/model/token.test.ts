import { expect, test } from "vitest";
import { findRenewal } from "../../../src/model/token.ts";

const DAY = 86_400_000;

/** Days before the end of a token that lives so many days, and the reminder that is due. */
test.each([
  [90, 7.1, undefined],
  [90, 7, "first"],
  [90, 1.1, "first"],
  [90, 1, "last"],
  [90, 0.01, "last"],
  [90, 0, undefined],
  [20, 5.1, undefined],
  [20, 5, "first"],
  [4, 1.1, undefined],
  [4, 1, "first"],
  [1, 0.3, undefined],
  [1, 0.25, "first"],
  [1, 0.01, "first"],
])("of a token for %d days, %d days before its end: %s", (lifeDays, leftDays, due) => {
  const token = { obtainedMs: 1_000, validUntilMs: 1_000 + lifeDays * DAY, isByCode: true };
  const nowMs = token.validUntilMs - leftDays * DAY;
  const renewal = findRenewal(token, nowMs);
  expect(renewal && (renewal.isLastDay ? "last" : "first")).toBe(due);
  expect(findRenewal({ ...token, isByCode: false }, nowMs)).toBeUndefined();
});
