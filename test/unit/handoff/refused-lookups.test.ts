/** I2 once: a delivery is not taken for picked up because the file system refuses to show its folder. */
import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";
import { systemDisk } from "../../../src/base/disk.ts";
import { openBench, recordOf, writeDelivery } from "./bench.ts";

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

const FOLDERS = ["m/t1", "m/t1-2", "m/t1-3"];
const REFUSED = FOLDERS.flatMap((folder) => [folder, `${folder}/transfer.json`]);

test.each(REFUSED.flatMap((path) => ["EACCES", "EIO"].map((code) => [path, code])))(
  "%s: %s",
  async (path, code) => {
    const bench = await openBench({});
    const record = await bench.note("t1");
    bench.ledger.end(record);
    // A crash happened before the entry named the third folder. Other deliveries have the first two names.
    await writeDelivery(bench.root, recordOf("t8"), "m/t1");
    await writeDelivery(bench.root, recordOf("t9"), "m/t1-2");
    await writeDelivery(bench.root, record, "m/t1-3");
    refusals.set(join(bench.root, path), code);
    await bench.scan();
    expect([bench.told, bench.ledger.journal]).toEqual([[], []]);
    // The file system answers again.
    refusals.clear();
    await bench.scan();
    expect(await bench.read(record, "wait")).toMatchObject({ folder: "m/t1-3" });
    await rm(join(bench.root, "m/t1-3"), { recursive: true });
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
