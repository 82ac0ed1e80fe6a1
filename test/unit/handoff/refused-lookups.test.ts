/** I2 once: a delivery is not taken for picked up because the file system refuses to show its folder. */
import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";
import { systemDisk } from "../../../src/base/disk.ts";
import { openBench } from "./bench.ts";

/** Paths that cannot be looked at or read, with the code of the error. */
const refusals = vi.hoisted(() => new Map<string, string>());

function demand(path: unknown): void {
  const code = refusals.get(String(path));
  if (code !== undefined) throw Object.assign(new Error(code), { code });
}

vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const open: typeof real.open = async (path, ...rest) => {
    demand(path);
    return real.open(path, ...rest);
  };
  return { ...real, open };
});

const { kindOf } = systemDisk;
vi.spyOn(systemDisk, "kindOf").mockImplementation(async (path) => {
  demand(path);
  return kindOf(path);
});

const REFUSED = ["m/t1", "m/t1/transfer.json"];

test.each(REFUSED.flatMap((path) => ["EACCES", "EIO"].map((code) => [path, code])))(
  "%s: %s",
  async (path, code) => {
    const bench = await openBench({});
    const { folder } = await bench.deliver("t1");
    refusals.set(join(bench.root, path), code);
    await bench.scan();
    expect([bench.told, bench.ledger.journal]).toEqual([[], []]);
    // The file system answers again.
    refusals.clear();
    await bench.scan();
    await rm(folder, { recursive: true });
    await bench.scan();
    expect(bench.told).toEqual(["t1: taken"]);
  },
);

test("a folder counts as picked up if a file has taken the place of the folder above it", async () => {
  const bench = await openBench({});
  const { folder } = await bench.deliver("t1");
  await rm(dirname(folder), { recursive: true });
  await writeFile(dirname(folder), "");
  await bench.scan();
  expect(bench.told).toEqual(["t1: taken"]);
});
