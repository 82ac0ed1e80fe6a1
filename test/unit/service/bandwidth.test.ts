import { getEventListeners } from "node:events";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { makeTimetable } from "../../../src/base/timetable.ts";
import { parseWindow } from "../../../src/config/times.ts";
import type { BandwidthRule } from "../../../src/model/mailbox.ts";
import { Bandwidth, rateAt } from "../../../src/service/bandwidth.ts";

const KIB = 1024;
const CHUNK_BYTES = 64 * KIB;

let end: AbortController;
let signal: AbortSignal;

// A Monday, 07:00.
const START_MS = Date.parse("2026-03-02T07:00Z");

beforeEach(() => {
  end = new AbortController();
  signal = end.signal;
  vi.useFakeTimers({ now: START_MS, toFake: ["Date", "performance", "setTimeout", "clearTimeout"] });
});
afterEach(() => {
  end.abort();
  vi.useRealTimers();
});

function always(bytesPerSecond: number | undefined): BandwidthRule[] {
  return [{ at: undefined, bytesPerSecond }];
}

function during(window: string, bytesPerSecond: number | undefined): BandwidthRule {
  return { at: makeTimetable("UTC", parseWindow(window)), bytesPerSecond };
}

/** Reads as fast as allowed, like a download, and counts. */
function startDownload(bandwidth: Bandwidth, totalBytes = Number.POSITIVE_INFINITY, stop = signal) {
  const download = { bytes: 0, largestTurn: 0, ended: Promise.resolve() };
  const run = async () => {
    while (download.bytes < totalBytes) {
      for (let rest = Math.min(CHUNK_BYTES, totalBytes - download.bytes); rest > 0; ) {
        const turn = await bandwidth.take(rest, stop);
        rest -= turn;
        download.bytes += turn;
        download.largestTurn = Math.max(download.largestTurn, turn);
      }
    }
  };
  download.ended = run();
  download.ended.catch(() => {});
  return download;
}

test.each([[[]], [always(undefined)], [[during("sat", 1024)]]])(
  "without a limit %j: bytes pass at once",
  (rules) => {
    const bandwidth = bandwidthOf(rules);
    for (const bytes of [1, CHUNK_BYTES, 10 * CHUNK_BYTES]) expect(bandwidth.take(bytes, signal)).toBe(bytes);
    expect(vi.getTimerCount()).toBe(0);
  },
);

test("with a limit all downloads together use it exactly, in equal shares", async () => {
  for (const rate of [KIB, 100 * KIB, 1024 * KIB, 100 * 1024 * KIB]) {
    const bandwidth = bandwidthOf(always(rate));
    const stop = new AbortController();
    const downloads = [1, 2, 3, 4].map(() => startDownload(bandwidth, Number.POSITIVE_INFINITY, stop.signal));
    await vi.advanceTimersByTimeAsync(10_000);
    const bytes = downloads.map((download) => download.bytes);
    const total = bytes.reduce((sum, each) => sum + each, 0);
    expect(total).toBeLessThanOrEqual(rate * 10.25);
    expect(total).toBeGreaterThan(rate * 9.75);
    const turn = Math.max(...downloads.map(({ largestTurn }) => largestTurn));
    expect(turn).toBeLessThanOrEqual(Math.min(CHUNK_BYTES, rate / 8));
    expect(Math.max(...bytes) - Math.min(...bytes)).toBeLessThanOrEqual(turn);
    stop.abort();
  }
});

test("with a limit unused bandwidth is saved for at most a quarter of a second", async () => {
  const bandwidth = bandwidthOf(always(1024 * KIB));
  await vi.advanceTimersByTimeAsync(3_600_000);
  const download = startDownload(bandwidth);
  await vi.advanceTimersByTimeAsync(0);
  expect(download.bytes).toBe(256 * KIB);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(download.bytes).toBeLessThanOrEqual(1280 * KIB);
});

test("with a limit a wait ends with its signal, and the others move up", async () => {
  const bandwidth = bandwidthOf(always(KIB));
  expect([bandwidth.take(128, signal), bandwidth.take(999, signal)]).toEqual([128, 128]);
  const stop = new AbortController();
  const stopped = bandwidth.take(128, stop.signal);
  const next = bandwidth.take(128, signal);
  stop.abort(new Error("stopped"));
  await expect(stopped).rejects.toThrow("stopped");
  await vi.advanceTimersByTimeAsync(125);
  expect(await next).toBe(128);
  await expect(bandwidth.take(128, stop.signal)).rejects.toThrow("stopped");
  expect(vi.getTimerCount()).toBe(0);
  expect([stop.signal, signal].map((it) => getEventListeners(it, "abort").length)).toEqual([0, 0]);
});

test("with a limit it wakes up at most fifty times a second, whatever the rate", async () => {
  const set = vi.spyOn(globalThis, "setTimeout");
  const stop = new AbortController();
  const bandwidth = bandwidthOf(always(500 * 1024 * KIB));
  for (const _ of [1, 2, 3, 4]) startDownload(bandwidth, Number.POSITIVE_INFINITY, stop.signal);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(set.mock.calls.length).toBeLessThanOrEqual(51);
  expect(set.mock.calls.length).toBeGreaterThan(10);
  stop.abort();
  set.mockRestore();
});

test("with a limit downloads of any number and size get all their bytes, never faster than the rate", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: KIB, max: 10_000 * KIB }),
      fc.array(fc.integer({ min: 1, max: 10_000 }), { minLength: 1, maxLength: 6 }),
      async (rate, milliseconds) => {
        const sizes = milliseconds.map((worth) => Math.ceil((rate * worth) / 1000));
        const beganMs = Date.now();
        const bandwidth = bandwidthOf(always(rate));
        const downloads = sizes.map((size) => startDownload(bandwidth, size));
        await vi.runAllTimersAsync();
        await Promise.all(downloads.map(({ ended }) => ended));
        const total = sizes.reduce((sum, size) => sum + size, 0);
        expect(downloads.map(({ bytes }) => bytes)).toEqual(sizes);
        // One burst is available at the start; at most two shortest pauses are lost.
        expect(total).toBeLessThanOrEqual(rate * ((Date.now() - beganMs) / 1000 + 0.25) + 1);
        expect(Date.now() - beganMs).toBeLessThanOrEqual((total / rate) * 1000 + 2 * 20 + sizes.length);
        expect(vi.getTimerCount()).toBe(0);
      },
    ),
    { numRuns: 50 },
  );
});

test("with a limit a clock that jumps neither stops downloads nor lifts the limit", async () => {
  const bandwidth = bandwidthOf(always(100 * KIB));
  const download = startDownload(bandwidth);
  await vi.advanceTimersByTimeAsync(1_000);
  for (const jumpMs of [-3_600_000, 86_400_000]) {
    vi.setSystemTime(Date.now() + jumpMs);
    const before = download.bytes;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(download.bytes - before).toBeLessThanOrEqual(225 * KIB);
    expect(download.bytes - before).toBeGreaterThan(150 * KIB);
  }
});

test("with a timetable, a change applies to running downloads", async () => {
  const bandwidth = bandwidthOf([
    during("mon 07:00-07:01", 100 * KIB),
    during("mon 07:01-07:02", 10 * KIB),
    during("mon 07:03-07:04", 50 * KIB),
  ]);
  const download = startDownload(bandwidth, 8_000 * KIB);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(Math.abs(download.bytes - 6_025 * KIB)).toBeLessThan(50 * KIB);
  const before = download.bytes;
  await vi.advanceTimersByTimeAsync(59_999);
  expect(Math.abs(download.bytes - before - 600 * KIB)).toBeLessThan(30 * KIB);
  // No rule applies from 07:02: the rest passes at once.
  await vi.advanceTimersByTimeAsync(500);
  expect(download.bytes).toBe(8_000 * KIB);
  expect(vi.getTimerCount()).toBe(0);
});

test("with a timetable, a limit that begins later applies from then on", () => {
  const bandwidth = bandwidthOf([during("mon 08:00-09:00", 4 * KIB)]);
  expect(bandwidth.take(CHUNK_BYTES, signal)).toBe(CHUNK_BYTES);
  vi.setSystemTime(START_MS + 3_600_000);
  expect(bandwidth.take(CHUNK_BYTES, signal)).toBe(KIB / 2);
});

test("with a timetable, the first rule that applies sets the limit, until any rule changes", () => {
  const rules = [during("mon 08:00-18:00", 2), during("06:00-20:00", 5), ...always(9)];
  const at = (text: string) => rateAt(rules, Date.parse(text));
  expect(at("2026-03-02T07:00Z")).toEqual({ bytesPerSecond: 5, untilMs: Date.parse("2026-03-02T08:00Z") });
  expect(at("2026-03-02T12:00Z")).toEqual({ bytesPerSecond: 2, untilMs: Date.parse("2026-03-02T18:00Z") });
  expect(at("2026-03-03T12:00Z")).toEqual({ bytesPerSecond: 5, untilMs: Date.parse("2026-03-03T20:00Z") });
  expect(at("2026-03-03T23:00Z")).toEqual({ bytesPerSecond: 9, untilMs: Date.parse("2026-03-04T06:00Z") });
  const none = { bytesPerSecond: Number.POSITIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY };
  expect([rateAt([], 0), rateAt(always(undefined), 0)]).toEqual([none, none]);
});

function bandwidthOf(rules: readonly BandwidthRule[]): Bandwidth {
  return new Bandwidth(() => rules);
}
