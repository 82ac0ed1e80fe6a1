import { describe, expect, test } from "vitest";
import { parseSince, parseUntil } from "../../../src/cli/options.ts";
import { formatMoment } from "../../../src/cli/printing.ts";

describe("points in time", () => {
  test.each([
    ["30s", 30_000],
    ["90m", 90 * 60_000],
    ["12h", 12 * 3_600_000],
    ["7d", 7 * 86_400_000],
    ["4w", 28 * 86_400_000],
  ])("%s is an age", (text, ms) => {
    const nowMs = Date.now();
    expect(nowMs - parseSince(text)).toBeGreaterThan(ms - 5_000);
    expect(nowMs - parseSince(text)).toBeLessThanOrEqual(ms);
  });

  test("a day starts and ends in local time", () => {
    expect(parseSince("2026-03-01")).toBe(new Date(2026, 2, 1).getTime());
    expect(parseUntil("2026-03-31")).toBe(new Date(2026, 3, 1).getTime());
  });

  test("a time of day is in local time or in the zone that it names", () => {
    expect(parseUntil("2026-03-01T14:30")).toBe(new Date(2026, 2, 1, 14, 30).getTime());
    expect(parseSince("2026-03-01 14:30:05")).toBe(new Date(2026, 2, 1, 14, 30, 5).getTime());
    expect(parseSince("2026-03-01T14:30:00Z")).toBe(Date.UTC(2026, 2, 1, 14, 30));
    expect(parseSince("2026-03-01T14:30:00+02:00")).toBe(Date.UTC(2026, 2, 1, 12, 30));
  });

  test.each(["", "soon", "7", "d", "-7d", "2026-02-30", "2026-13-01", "01.03.2026", "2026-03-01T25:00"])(
    "%j is refused, with what is possible",
    (text) => {
      expect(() => parseSince(text)).toThrow("an age (30m, 12h, 7d, 4w) or a date (2026-03-01)");
    },
  );

  test("are formatted to the second", () => {
    expect(formatMoment(new Date(2026, 2, 1, 4, 5, 6).toISOString())).toBe("2026-03-01 04:05:06");
  });
});
