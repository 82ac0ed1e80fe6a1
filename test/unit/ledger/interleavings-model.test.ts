/** The model disk answers like the system's disk, and loses unsynced changes in a power cut. */
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Disk, systemDisk } from "../../../src/base/disk.ts";
import { systemCode } from "../../../src/base/faults.ts";
import { ModelDisk } from "../../support/model-disk.ts";
import { makeFolder } from "../../support/program.ts";

const FOLDERS = ["f", "g"];
const NAMES = ["f/x", "f/y", "g/x"];

const CALLS = {
  create: (disk: Disk, path: string) => write(disk.create(path, 0o600), `new ${path}`),
  truncate: (disk: Disk, path: string) => write(disk.truncate(path), `again ${path}`),
  read: (disk: Disk, path: string) => disk.read(path),
  list: async (disk: Disk, path: string) => (await disk.list(join(path, ".."))).sort(),
  kindOf: (disk: Disk, path: string) => disk.kindOf(path),
  link: (disk: Disk, path: string, other: string) => disk.link(path, other),
  rename: (disk: Disk, path: string, other: string) => disk.rename(path, other),
  unlink: (disk: Disk, path: string) => disk.unlink(path),
} as const;

const calls = fc.array(
  fc.record({
    call: fc.constantFrom(...(Object.keys(CALLS) as (keyof typeof CALLS)[])),
    path: fc.constantFrom(...NAMES),
    other: fc.constantFrom(...NAMES),
  }),
  { minLength: 5, maxLength: 40 },
);

test("the model answers each call like the system's disk", async () => {
  await fc.assert(
    fc.asyncProperty(calls, async (list) => {
      const [folder, model] = [await makeFolder(), await openModel()];
      for (const name of FOLDERS) await systemDisk.makeFolder(join(folder, name), 0o700);
      for (const { call, path, other } of list) {
        const wanted = await answerOf(CALLS[call](systemDisk, join(folder, path), join(folder, other)));
        const given = await answerOf(CALLS[call](model, `/${path}`, `/${other}`));
        const answer = typeof wanted === "string" ? wanted.replaceAll(folder, "") : wanted;
        expect({ call, path, other, answer: given }).toEqual({ call, path, other, answer });
      }
    }),
    { numRuns: 200 },
  );
});

test("an open file is written to after its name was taken away or moved", async () => {
  const disk = await openModel();
  const [moved, removed] = [await disk.create("/f/moved", 0o600), await disk.create("/f/removed", 0o600)];
  await disk.rename("/f/moved", "/g/there");
  await disk.unlink("/f/removed");
  await moved.write("text");
  await removed.write("text");
  expect(await disk.read("/g/there")).toBe("text");
  expect(await disk.kindOf("/f/removed")).toBeUndefined();
});

test("a power cut leaves synced texts under synced names", async () => {
  const disk = await openModel();
  for (const name of ["both", "name", "text"]) {
    const file = await disk.create(`/f/${name}`, 0o600);
    await file.write("text");
    if (name !== "name") await file.sync();
    if (name === "name") await disk.syncFolder("/f");
  }
  await disk.link("/f/text", "/f/both-2");
  expect(disk.powerCut().textsIn("/f")).toEqual(
    new Map([
      ["both", "text"],
      ["name", ""],
    ]),
  );
});

test("a rename is durable when the folder that it moved into is synced, and leaves one name at any time", async () => {
  const disk = await openModel();
  await disk.create("/f/moved", 0o600);
  await disk.syncFolder("/f");
  await disk.rename("/f/moved", "/g/moved");
  await disk.rename("/g/moved", "/g/again");
  await disk.syncFolder("/f");
  const [first, second] = disk.unsynced();
  for (const survivors of [[], [first], [second], [first, second]]) {
    const left = disk.powerCut(new Set(survivors.filter((it) => it !== undefined)));
    expect([...left.textsIn("/f").keys(), ...left.textsIn("/g").keys()]).toHaveLength(1);
  }
  await disk.syncFolder("/g");
  const left = disk.powerCut();
  expect([left.textsIn("/f").size, [...left.textsIn("/g").keys()]]).toEqual([0, ["again"]]);
});

async function openModel(): Promise<ModelDisk> {
  return new ModelDisk(FOLDERS.map((name) => `/${name}`));
}

async function write(opening: ReturnType<Disk["create"]>, text: string): Promise<void> {
  const file = await opening;
  await file.write(text);
  await file.close();
}

async function answerOf(call: Promise<unknown>): Promise<unknown> {
  return call.catch((error: unknown) => {
    if (systemCode(error) === "") throw error;
    return { code: systemCode(error) };
  });
}
