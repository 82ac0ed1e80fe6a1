// @module-tag system
/**
 * The disk fails at the daemon's file-system calls, by errors injected into the real calls. In the end no partial folder
 * was ever visible (I1), everything is delivered once (I2), a disk that works again is used again (I6), no failure was
 * silent (I7), and nothing is left behind.
 */
import { describe, expect, test } from "vitest";
import {
  type Bench,
  type Call,
  type Failure,
  KINDS,
  type Kind,
  openBench,
  type Past,
  type Point,
} from "../support/failing-disk.ts";
import { oneIn } from "../support/thorough.ts";

const PERIODS = [2, 3, 5, 7];
const CHANGING: ReadonlySet<Kind> = new Set(["write", "fsync", "rename", "link", "mkdir", "remove"]);
/** Too rare to fail periodically. */
const RARE: ReadonlySet<Kind> = new Set(["statfs", "read", "chmod", "link"]);
const FREQUENT = KINDS.filter((kind) => !RARE.has(kind));
/** Folders for records are created one after the other: the first one is enough. */
const ALIKE = /\/ledger\/[1-9a-f]"/;
/** Runs differ a little, as downloads arrive in other pieces: nearly all points must be reached. */
const MIN_SHARE = 0.85;

describe("everything is delivered once and complete, and nothing is left behind, if the disk fails", () => {
  test("at any single call", async () => {
    const bench = await openBench("files");
    await walk(bench, once(await bench.calls("nothing"), "nothing"));
  }, 600_000);

  test("at any single call on a ZIP", async () => {
    const bench = await openBench("zip");
    const calls = await bench.calls("a start");
    await walk(bench, once(calls.filter(isOfTransfer), "a start"));
  }, 600_000);

  test("at any single call that needs space, because it is full", async () => {
    const bench = await openBench("files");
    const calls = await bench.calls("a start");
    await walk(bench, once(calls.filter(needsRoom), "a start", "ENOSPC"));
  }, 600_000);

  test("at any single call after an earlier failure", async () => {
    const bench = await openBench("files");
    const points: Point[] = [];
    for (const past of ["a refused rename", "an unsynced rename"] as const) {
      points.push(...once(await bench.calls(past), past, "EIO", 2));
    }
    await walk(bench, points);
  }, 600_000);

  test.each(["files", "zip"] as const)(
    "at every second, third, fifth or seventh call, with %s",
    async (fetch) => {
      await walk(
        await openBench(fetch),
        periodic((period) => `${period}+${period}`),
      );
    },
    600_000,
  );

  test("at every call from some point on", async () => {
    const bench = await openBench("files");
    const opens = (await bench.calls("a start")).filter(({ kind }) => kind === "open");
    const moments = opens.filter(({ nth }) => nth % 3 === 1);
    // Files that cannot be opened are not written either.
    const kinds = KINDS.filter((kind) => kind !== "write");
    await walk(
      bench,
      moments.map(({ nth }) => ({ kinds, past: "a start", error: "EIO", when: `${nth}+` })),
    );
  }, 600_000);

  test("from some point on, so that not even temporary files can be removed", async () => {
    const moments = Array.from({ length: 12 }, (_, at) => `${at + 1}+`);
    const pairs = [["fsync", "remove"] as const, ["rename", "remove"] as const];
    const points = pairs.flatMap((kinds) =>
      moments.map((when) => ({ kinds, past: "a start", error: "EIO", when }) as const),
    );
    await walk(await openBench("files"), points);
  }, 600_000);

  test("for a while, without a restart of the daemon", async () => {
    const points = periodic((period) => `${period}..40+${period}`);
    await walk(
      await openBench("files"),
      points.map((point) => ({ ...point, runsOn: true })),
    );
  }, 600_000);
});

/** A share of the changing calls, and a smaller one of the reading calls. */
function once(calls: readonly Call[], past: Past, error: Failure["error"] = "EIO", lookEvery = 3): Point[] {
  return calls
    .filter(({ text }) => !ALIKE.test(text))
    .filter(({ kind, nth }) => (nth - 1) % oneIn(CHANGING.has(kind) ? 6 : 8 * lookEvery) === 0)
    .map(({ kind, nth }) => ({ kinds: [kind], past, error, when: String(nth) }));
}

function periodic(when: (period: number) => string): Point[] {
  return FREQUENT.flatMap((kind) =>
    PERIODS.map((period) => ({ kinds: [kind], past: "a start", error: "EIO", when: when(period) }) as const),
  );
}

function isOfTransfer({ text }: Call): boolean {
  return text.includes("/staging/");
}

function needsRoom({ kind, text }: Call): boolean {
  return ["write", "mkdir", "rename"].includes(kind) || text.includes("O_CREAT");
}

/** Runs every point, and prints how many were reached and which failed. */
async function walk(bench: Bench, points: readonly Point[]): Promise<void> {
  const waiting = [...points];
  const reached = new Map<string, number>();
  const problems: string[] = [];
  const work = async (slot: number) => {
    for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
      const visit = await bench.visit(slot, point);
      const { kinds, error, when, past } = point;
      const what = kinds.length > 2 ? "all" : kinds.join(" and ");
      if (visit.failed.length > 0) reached.set(what, (reached.get(what) ?? 0) + 1);
      const where = `after ${past}, ${what} ${error} ${when}, ${visit.failed.length} failed: ${visit.failed[0]}`;
      problems.push(...visit.problems.map((problem) => `${problem} (${where})`));
    }
  };
  await Promise.all(bench.slots.map(work));
  const numbers = [...reached].map(([what, count]) => `${what} ${count}`).join(", ");
  const name = expect.getState().currentTestName?.split(" > ").at(-1);
  process.stdout.write(`points of failure, ${name}: ${numbers}\n`);
  expect(problems).toEqual([]);
  const total = [...reached.values()].reduce((sum, count) => sum + count, 0);
  expect(total).toBeGreaterThan(points.length * MIN_SHARE);
}
