/** Files of lines that are read forward from saved positions. */
import { appendFile, mkdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { findEnd, type Positions, readTail, type TailedFolder } from "../../../src/base/tail.ts";
import { makeFolder } from "../../support/program.ts";

interface Line {
  readonly at: number;
  readonly text?: string;
}

test("each line is passed on once, the oldest first over all files, also of a file that is new", async () => {
  const tailed = await makeTailed();
  const positions: Positions = new Map();
  await write(tailed, "a.log", [1, 4, 5]);
  await write(tailed, "b.log", [2, 3, 6]);
  await write(tailed, "other.txt", [0]);
  expect(await read(tailed, positions)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(await read(tailed, positions)).toEqual([]);
  await write(tailed, "c.log", [8]);
  await write(tailed, "a.log", [9]);
  await write(tailed, "b.log", [7]);
  expect(await read(tailed, positions)).toEqual([7, 8, 9]);
});

test("from the end, only later lines are passed on", async () => {
  const tailed = await makeTailed();
  await write(tailed, "a.log", [1, 2]);
  const positions = await findEnd(tailed);
  await write(tailed, "a.log", [3]);
  await write(tailed, "b.log", [4]);
  expect(await read(tailed, positions)).toEqual([3, 4]);
});

test("an incomplete line waits for its end, and a damaged one is skipped", async () => {
  const tailed = await makeTailed();
  const positions: Positions = new Map();
  const path = join(tailed.folder, "a.log");
  await writeFile(path, '{"at":1}\n{"at":');
  expect(await read(tailed, positions)).toEqual([1]);
  await appendFile(path, "2}");
  expect(await read(tailed, positions)).toEqual([]);
  await appendFile(path, `\n{"torn\n\n{"at":3}\n`);
  expect(await read(tailed, positions)).toEqual([2, 3]);
});

test("lines that are longer than a block are skipped", async () => {
  const tailed = await makeTailed();
  const path = join(tailed.folder, "a.log");
  const long = JSON.stringify({ at: 1, text: "x".repeat(600_000) });
  const fits = JSON.stringify({ at: 2, text: "ö".repeat(100_000) });
  await writeFile(path, [long, fits, fits, '{"at":3}', ""].join("\n"));
  expect(await read(tailed, new Map())).toEqual([2, 2, 3]);
});

test("positions of removed files are dropped, and a file that became shorter is read from its beginning", async () => {
  const tailed = await makeTailed();
  const positions: Positions = new Map();
  await write(tailed, "a.log", [1, 2, 3]);
  await write(tailed, "b.log", [4]);
  await read(tailed, positions);
  await rm(join(tailed.folder, "b.log"));
  await truncate(join(tailed.folder, "a.log"), 9);
  expect(await read(tailed, positions)).toEqual([1]);
  expect([...positions]).toEqual([["a.log", 9]]);
});

test("a missing folder has no lines, and a file that cannot be read does not keep others back", async () => {
  const tailed = await makeTailed();
  const missing = { ...tailed, folder: "/nonexistent" };
  expect([[...(await findEnd(missing))], await read(missing, new Map())]).toEqual([[], []]);
  await mkdir(join(tailed.folder, "a.log"));
  await write(tailed, "b.log", [1]);
  const lines: number[] = [];
  expect(await readTail(tailed, new Map(), ({ at }) => void lines.push(at))).toBe(false);
  expect(lines).toEqual([1]);
});

test("however lines are written and readers are killed, each line is passed on once after the last saved position", async () => {
  const step = fc.oneof(
    fc.record({ file: fc.constantFrom("a.log", "b.log"), lines: fc.nat(3) }),
    fc.constant("read" as const),
    fc.constant("restart" as const),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const tailed = await makeTailed();
      let positions: Positions = new Map();
      let saved = { positions: new Map(positions), count: 0 };
      let number = 0;
      const seen: number[] = [];
      for (const each of [...steps, "read" as const]) {
        if (each === "restart") {
          positions = new Map(saved.positions);
          seen.length = saved.count;
        } else if (each === "read") {
          seen.push(...(await read(tailed, positions)));
          saved = { positions: new Map(positions), count: seen.length };
        } else {
          const lines = Array.from({ length: each.lines }, () => `${JSON.stringify({ at: ++number })}\n`);
          await appendFile(join(tailed.folder, each.file), lines.join(""));
        }
      }
      expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: number }, (_, at) => at + 1));
    }),
    { numRuns: 40 },
  );
});

async function makeTailed(): Promise<TailedFolder<Line>> {
  return {
    folder: await makeFolder(),
    pattern: /\.log$/,
    parse(line) {
      try {
        return JSON.parse(line) as Line;
      } catch {
        return undefined;
      }
    },
    orderOf: ({ at }) => String(at),
  };
}

async function write({ folder }: TailedFolder<Line>, name: string, times: readonly number[]): Promise<void> {
  await appendFile(join(folder, name), times.map((at) => `${JSON.stringify({ at })}\n`).join(""));
}

async function read(tailed: TailedFolder<Line>, positions: Positions): Promise<number[]> {
  const lines: number[] = [];
  await readTail(tailed, positions, ({ at }) => void lines.push(at));
  return lines;
}
