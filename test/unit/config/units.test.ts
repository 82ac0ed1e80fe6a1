import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  parseDuration,
  parseLongDuration,
  parseMode,
  parseRate,
  parseSize,
} from "../../../src/config/units.ts";

const DAY_MS = 86_400_000;

test.each([
  ["90d", 90 * DAY_MS],
  ["36h", 1.5 * DAY_MS],
  ["3650d", 3650 * DAY_MS],
  ["3651d", undefined],
  ["0d", undefined],
  ["forever", undefined],
])("a long duration: %s", (text, durationMs) => {
  expect(parseLongDuration(text)).toBe(durationMs);
});

describe("durations", () => {
  test.each([
    ["250ms", 250],
    ["1.5s", 1500],
    ["60s", 60_000],
    ["2m", 120_000],
    ["0.001ms", 1],
    ["24h", DAY_MS],
  ])("%s", (text, durationMs) => {
    expect(parseDuration(text)).toBe(durationMs);
  });

  test.each([
    "",
    "soon",
    "5",
    "0s",
    "0.0m",
    "-1s",
    "1 s",
    "1S",
    "1d",
    "s",
    "1.s",
    "25h",
    "1e3s",
    "99999999h",
  ])("not %j", (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test("round-trip", () => {
    const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
    fc.assert(
      fc.property(
        fc
          .constantFrom(...(["ms", "s", "m", "h"] as const))
          .chain((unit) =>
            fc.record({ unit: fc.constant(unit), count: fc.integer({ min: 1, max: DAY_MS / units[unit] }) }),
          ),
        ({ unit, count }) => {
          const durationMs = parseDuration(`${count}${unit}`) ?? Number.NaN;
          expect(`${durationMs / units[unit]}${unit}`).toBe(`${count}${unit}`);
        },
      ),
    );
  });
});

describe("sizes", () => {
  test.each([
    ["0", 0],
    ["512", 512],
    ["512B", 512],
    ["1kB", 1000],
    ["1KB", 1000],
    ["1KiB", 1024],
    ["10MiB", 10_485_760],
    ["10 MiB", 10_485_760],
    ["1GB", 1_000_000_000],
    ["1.5GiB", 1_610_612_736],
    ["1TiB", 2 ** 40],
  ])("%s", (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  test.each(["", "much", "-1", "1gig", "10M", "1 Gi", "1,5GB", "1e9", "1.5", "999999999TiB", "1PiB"])(
    "not %j",
    (text) => {
      expect(parseSize(text)).toBeUndefined();
    },
  );

  test("round-trip", () => {
    const units = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, kB: 1e3, MB: 1e6, GB: 1e9 };
    fc.assert(
      fc.property(
        fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[])),
        fc.integer({ min: 0, max: 8_000_000 }),
        (unit, count) => {
          expect((parseSize(`${count}${unit}`) ?? Number.NaN) / units[unit]).toBe(count);
        },
      ),
    );
  });
});

describe("rates", () => {
  test.each([
    ["1KiB/s", 1024],
    ["10MiB/s", 10_485_760],
    ["1.5 MB/s", 1_500_000],
    ["500B/s", 500],
  ])("%s", (text, bytesPerSecond) => {
    expect(parseRate(text)).toBe(bytesPerSecond);
  });

  test.each(["", "none", "10", "10/s", "10MiB", "10MiB/m", "10M/s", "-1B/s", "999999999TiB/s"])(
    "not %j",
    (text) => {
      expect(parseRate(text)).toBeUndefined();
    },
  );
});

describe("permissions", () => {
  test("are octal in every notation", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0o777 }), (mode) => {
        const digits = mode.toString(8).padStart(3, "0");
        expect([digits, `0${digits}`, `0o${digits}`].map(parseMode)).toEqual([mode, mode, mode]);
      }),
    );
  });

  test.each(["", "rw-r-----", "0888", "1777", "04755", "64", "0x1a0", "-640"])("not %j", (text) => {
    expect(parseMode(text)).toBeUndefined();
  });
});
