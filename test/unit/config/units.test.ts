import fc from "fast-check";
import { expect, test } from "vitest";
import { parseDuration, parseMode, parseSize } from "../../../src/config/units.ts";

/** Texts with their values, and texts that are refused. */
test.each([
  [
    "durations",
    parseDuration,
    "250ms=250, 1.5s=1500, 60s=60000, 2m=120000, 0.001ms=1, 24h=86400000, 36h=129600000, 3650d=315360000000",
    ", soon, 5, 0s, 0.0m, -1s, 1 s, 1S, s, 1.s, 3651d, forever, 1e3s, 99999999h",
  ],
  [
    "sizes",
    parseSize,
    "0=0, 512=512, 512B=512, 1kB=1000, 1KB=1000, 1KiB=1024, 10MiB=10485760, 10 MiB=10485760, 1GB=1000000000, 1.5GiB=1610612736, 1TiB=1099511627776",
    ", much, -1, 1gig, 10M, 1 Gi, 1;5GB, 1e9, 1.5, 999999999TiB, 1PiB",
  ],
  [
    "permissions",
    parseMode,
    "640=416, 0640=416, 0o640=416",
    ", rw-r-----, 0888, 1777, 04755, 64, 0x1a0, -640",
  ],
] as const)("%s have units, and nothing else is accepted", (_, parse, right, wrong) => {
  const pairs = right.split(", ").map((pair) => pair.split("=") as [string, string]);
  expect(pairs.map(([text]) => [text, parse(text)])).toEqual(
    pairs.map(([text, value]) => [text, Number(value)]),
  );
  expect(wrong.split(", ").filter((text) => parse(text) !== undefined)).toEqual([]);
});

test("permissions are octal in every notation", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0o777 }), (mode) => {
      const digits = mode.toString(8).padStart(3, "0");
      expect([digits, `0${digits}`, `0o${digits}`].map(parseMode)).toEqual([mode, mode, mode]);
    }),
  );
});
