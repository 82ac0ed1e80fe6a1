/** A wait lasts as long as it was meant to, whatever happens to the wall clock. */
import { describe, expect, test } from "vitest";
import { BoundedMap, beginWait, LONGEST_MS, waitLeft } from "../../../src/base/waits.ts";
import { Clocks } from "../../support/clocks.ts";

const START_MS = Date.parse("2026-03-01T08:00:00Z");
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

describe("a wait", () => {
  test.each([0, 20 * DAY_MS, -20 * DAY_MS])(
    "lasts for its time while its process lives, if the clock is set by %i ms",
    (byMs) => {
      const { clocks, left, until } = begin(5 * MINUTE_MS);
      clocks.wallMs += byMs;
      expect(left(until)).toBe(5 * MINUTE_MS);
      clocks.pass(4 * MINUTE_MS);
      expect(left(until)).toBe(MINUTE_MS);
      clocks.pass(MINUTE_MS);
      clocks.wallMs -= byMs;
      expect(left(until)).toBe(0);
    },
  );

  test.each([
    ["ends in time after a restart", 2 * MINUTE_MS, 3 * MINUTE_MS],
    [
      "lasts no longer than its cap after a restart with a clock that was set back",
      -3_650 * DAY_MS,
      LONGEST_MS.attempt,
    ],
  ])("%s", (_, byMs, expectedMs) => {
    const { clocks, left, until } = begin(5 * MINUTE_MS);
    clocks.wallMs += byMs;
    clocks.restart();
    expect(left(until)).toBe(expectedMs);
    clocks.pass(MINUTE_MS);
    expect(left(until)).toBe(expectedMs - MINUTE_MS);
  });

  test("takes the place of an earlier one", () => {
    const { clocks, left, until } = begin(5 * MINUTE_MS);
    const next = clocks.run(() => beginWait("id", MINUTE_MS, clocks.wallMs));
    expect(left(next)).toBe(MINUTE_MS);
    expect(left(until)).toBe(5 * MINUTE_MS);
  });

  test("that is remembered takes bounded memory", () => {
    const map = new BoundedMap<number>();
    for (let at = 0; at <= BoundedMap.MAX_ENTRIES; at++) map.set(String(at), at);
    expect([map.size, map.has("0"), map.has("1")]).toEqual([BoundedMap.MAX_ENTRIES, false, true]);
  });
});

function begin(ms: number) {
  const clocks = new Clocks(START_MS);
  const until = clocks.run(() => beginWait("id", ms, clocks.wallMs));
  const left = (of: string) => clocks.run(() => waitLeft("id", of, LONGEST_MS.attempt, clocks.wallMs));
  return { clocks, until, left };
}
