import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseDuration, parseMode, parseSize } from "../../../src/config/units.ts";

const DAY_MS = 86_400_000;

describe("durations", () => {
  test.each([
    ["250ms", 250],
    ["1.5s", 1500],
    ["60s", 60_000],
    ["2m", 120_000],
    ["0.001ms", 1],
    ["24h", DAY_MS],
    ["36h", 1.5 * DAY_MS],
    ["3650d", 3650 * DAY_MS],
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
    "s",
    "1.s",
    "3651d",
    "forever",
    "1e3s",
    "99999999h",
  ])("not %j", (text) => {
    expect(parseDuration(text)).toBeUndefined();
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
