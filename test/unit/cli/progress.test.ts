import { describe, expect, test } from "vitest";
import { formatBytes, formatSeconds } from "../../../src/base/phrases.ts";
import { formatProgress } from "../../../src/cli/printing.ts";

describe("progress", () => {
  test("shows the share, the speed and the time left", () => {
    expect(formatProgress("scan.tiff", 256 * 1024 ** 2, 1024 ** 3, 4)).toBe(
      "██████░░░░░░░░░░░░░░░░░░  25%  256 MiB of 1.0 GiB  64 MiB/s  12 s left  scan.tiff",
    );
  });

  test("copes with an unknown size, no bytes yet, and more bytes than announced", () => {
    expect(formatProgress("x", 2048, undefined, 1)).toBe("x  2.0 KiB  2.0 KiB/s");
    expect(formatProgress("x", 0, 10, 0)).toContain("░   0%  0 bytes of 10 bytes  0 bytes/s    x");
    expect(formatProgress("x", 20, 10, 1)).toContain("100%");
  });
});

describe("numbers for people", () => {
  test.each([
    [0, "0 bytes"],
    [1023, "1023 bytes"],
    [1024, "1.0 KiB"],
    [10 * 1024, "10 KiB"],
    [3.5 * 1024 ** 3, "3.5 GiB"],
    [2 ** 60, "1024 PiB"],
  ])("%i bytes are %j", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  test.each([
    [0.4, "0 s"],
    [59.6, "1 min 0 s"],
    [3599, "59 min 59 s"],
    [7260, "2 h 1 min"],
  ])("%f seconds are %j", (seconds, text) => {
    expect(formatSeconds(seconds)).toBe(text);
  });
});
