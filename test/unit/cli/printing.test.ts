/** Points in time, progress and results as commands print them. */

import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import {
  formatBytes,
  formatDue,
  formatMoment,
  formatSeconds,
  localizeTimes,
} from "../../../src/base/phrases.ts";
import type { Context } from "../../../src/cli/command.ts";
import { parseSince, parseUntil } from "../../../src/cli/options.ts";
import { report } from "../../../src/cli/orders.ts";
import { columnsOf, formatCells, formatProgress, printTable } from "../../../src/cli/printing.ts";
import type { ActResult } from "../../../src/model/views.ts";

test.each(["=1+1", "+1", "-1", "@SUM(A1)", "＝1"])("%s is no formula in a spreadsheet", (text) => {
  const rows = [{ sender: text, subject: `x${text}` }];
  const stdout = new PassThrough();
  printTable({ stdout } as unknown as Context, columnsOf<(typeof rows)[0]>("sender", "subject"), rows);
  expect(stdout.read().toString()).toBe(`'${text}\tx${text}\n`);
  expect(formatCells([text])).toBe(`'${text}\n`);
});

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

  test("are formatted to the second, in the zone, and in 24 hours", () => {
    const iso = "2026-07-01T22:05:06.789Z";
    expect(formatMoment(iso, "Europe/Berlin")).toBe("2026-07-02 00:05:06");
    expect(formatMoment(iso, "America/St_Johns")).toBe("2026-07-01 19:35:06");
    expect(formatMoment(new Date(2026, 2, 1, 14, 5, 6).toISOString(), undefined)).toBe("2026-03-01 14:05:06");
    expect(formatMoment(new Date(8.64e15).toISOString(), "Asia/Tokyo")).toContain("275760-09-13");
    expect(formatMoment("soon", "UTC")).toBe("soon");
  });

  test("in a sentence of ours are formatted too, but not in a name", () => {
    const text = "Since 2026-07-01T12:00:00.000Z, until 2026-01-01T12:00:00Z. x-2026-01-01T12:00:00Z.csv";
    expect(localizeTimes(text, "Europe/Berlin")).toBe(
      "Since 2026-07-01 14:00:00, until 2026-01-01 13:00:00. x-2026-01-01T12:00:00Z.csv",
    );
  });

  test("that are due are now, and never in the past", () => {
    const nowMs = Date.parse("2026-07-01T12:00:00Z");
    expect(formatDue("2026-07-01T11:59:57Z", nowMs)).toBe("now");
    expect(formatDue("2026-07-01T12:00:03Z", nowMs)).toBe("in 3 s");
  });
});

test("progress shows the share, the speed and the time left, and copes with an unknown size, no bytes yet, and more bytes than announced", () => {
  expect(formatProgress("scan.tiff", 256 * 1024 ** 2, 1024 ** 3, 4)).toBe(
    "██████░░░░░░░░░░░░░░░░░░  25%  256 MiB of 1.0 GiB  64 MiB/s  12 s left  scan.tiff",
  );
  expect(formatProgress("x", 2048, undefined, 1)).toBe("x  2.0 KiB  2.0 KiB/s");
  expect(formatProgress("x", 0, 10, 0)).toContain("░   0%  0 bytes of 10 bytes  0 bytes/s    x");
  expect(formatProgress("x", 20, 10, 1)).toContain("100%");
});

test.each([
  [0, "0 bytes"],
  [1023, "1023 bytes"],
  [1024, "1.0 KiB"],
  [10 * 1024, "10 KiB"],
  [3.5 * 1024 ** 3, "3.5 GiB"],
  [2 ** 60, "1024 PiB"],
])("numbers for people: %i bytes are %j", (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

test.each([
  [0.4, "0 s"],
  [59.6, "1 min 0 s"],
  [3599, "59 min 59 s"],
  [7260, "2 h 1 min"],
])("numbers for people: %f seconds are %j", (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text);
});

test("results of one transfer for two mailboxes name their mailbox", () => {
  const stderr = new PassThrough();
  const context = { stdout: new PassThrough(), stderr } as unknown as Context;
  const result = (mailbox: string, trackingId: string): ActResult => ({
    mailbox,
    trackingId,
    status: 200,
    text: `${trackingId} was discarded.`,
    state: "gone",
    result: "fine",
  });
  const results = [result("orders", "t1"), result("archive", "t1"), result("orders", "t2")];
  expect(report(context, results, {}, false)).toBe("fine");
  expect(stderr.read().toString()).toBe(
    "orders: t1 was discarded.\narchive: t1 was discarded.\nt2 was discarded.\n",
  );
});
