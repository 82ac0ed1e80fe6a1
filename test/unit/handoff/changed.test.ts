/** I7 nothing silent: a delivered folder with a manifest that is not the delivered one is told once, and costs nothing. */
import { rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { HandoffSummary } from "../../../src/model/handoff.ts";
import { runCommand } from "../../support/program.ts";
import { openBench } from "./bench.ts";

const WRITTEN = { bytes: 1, sha256: "a".repeat(64) };

const CHANGES: readonly [string, (path: string) => Promise<unknown>, string][] = [
  ["of 512 MiB", (path) => truncate(path, 512 * 1024 ** 2), "transfer.json is larger than any of ours"],
  [
    "that is a pipe",
    async (path) => {
      await rm(path);
      await runCommand("mkfifo", [path]);
    },
    "transfer.json is not a plain file",
  ],
];

test.each(CHANGES)("a manifest %s", async (_, change, problem) => {
  const bench = await openBench({});
  const { folder } = await bench.deliver("t1", { files: 3 });
  const summaries: HandoffSummary[] = [];
  const emit = bench.emitAnd({ "outbox-scanned": ({ summary }) => void summaries.push(summary) });
  await bench.scan({ emit });
  expect([bench.told, summaries.at(-1)?.troubled]).toEqual([[], 0]);
  await change(join(folder, "transfer.json"));
  // Two starts of the program.
  await bench.scan({ emit });
  await bench.scan({ emit });
  expect(bench.told).toEqual([`t1: ${problem}`]);
  expect(summaries.at(-1)).toMatchObject({
    waiting: 1,
    troubled: 1,
    troubles: [{ folder: "m/t1", problem }],
  });
  await rm(folder, { recursive: true });
  await bench.scan({ emit });
  expect(bench.told.slice(1)).toEqual(["t1: taken"]);
  expect(summaries.at(-1)?.troubled).toBe(0);
});

test("a manifest of another size than recorded is told, until it is back", async () => {
  const bench = await openBench({});
  const { folder } = await bench.deliver("t1", { written: { manifest: WRITTEN, sums: WRITTEN } });
  await bench.scan();
  expect(bench.told).toEqual([expect.stringMatching(/^t1: transfer\.json has \d+ bytes instead of 1$/)]);
  await writeFile(join(folder, "transfer.json"), "{");
  await bench.scan();
  await bench.scan();
  expect(bench.told).toHaveLength(1);
  expect(await bench.files()).toEqual(["t1~1.wait"]);
});
