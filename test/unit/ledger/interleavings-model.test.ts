/** The model disk answers like the system's disk, and loses unsynced changes in a power cut. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Disk, systemDisk } from "../../../src/base/disk.ts";
import { systemCode } from "../../../src/base/faults.ts";
import { ModelDisk } from "../../support/model-disk.ts";

const NAMES = ["a", "b", "a/x", "a/y", "b/x", "a/x/z"];

const CALLS = {
  create: (disk: Disk, path: string) => write(disk.create(path, 0o600), `new ${path}`),
  truncate: (disk: Disk, path: string) => write(disk.truncate(path), `again ${path}`),
  read: (disk: Disk, path: string) => disk.read(path),
  list: async (disk: Disk, path: string) => (await disk.list(path)).sort(),
  kindOf: (disk: Disk, path: string) => disk.kindOf(path),
  link: (disk: Disk, path: string, other: string) => disk.link(path, other),
  rename: (disk: Disk, path: string, other: string) => disk.rename(path, other),
  unlink: (disk: Disk, path: string) => disk.unlink(path),
  makeFolder: (disk: Disk, path: string) => disk.makeFolder(path, 0o700),
  removeFolder: (disk: Disk, path: string) => disk.removeFolder(path),
  removeTree: (disk: Disk, path: string) => disk.removeTree(path),
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
      const folder = await mkdtemp(join(tmpdir(), "inlet-model-"));
      try {
        const model = new ModelDisk();
        for (const { call, path, other } of list) {
          const wanted = await answerOf(CALLS[call](systemDisk, join(folder, path), join(folder, other)));
          const given = await answerOf(CALLS[call](model, join("/", path), join("/", other)));
          expect({ call, path, other, answer: given }).toEqual({
            call,
            path,
            other,
            answer: plain(wanted, folder),
          });
        }
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    }),
    { numRuns: 300 },
  );
});

test("an open file is written to after its name was taken away or moved", async () => {
  const disk = new ModelDisk();
  const [moved, removed] = [await disk.create("/moved", 0o600), await disk.create("/removed", 0o600)];
  await disk.rename("/moved", "/there");
  await disk.unlink("/removed");
  await moved.write("text");
  await removed.write("text");
  expect(await disk.read("/there")).toBe("text");
  expect(await disk.kindOf("/removed")).toBeUndefined();
});

test("a link is seen as a link", async () => {
  const disk = new ModelDisk();
  disk.makeLink("/link");
  expect(await disk.kindOf("/link")).toBe("link");
});

test("a power cut leaves synced texts under synced names", async () => {
  const disk = new ModelDisk();
  for (const name of ["/both", "/name", "/text"]) {
    const file = await disk.create(name, 0o600);
    await file.write("text");
    if (name !== "/name") await file.sync();
    if (name === "/name") await disk.syncFolder("/");
  }
  await disk.link("/text", "/both-2");
  const left = disk.powerCut();
  expect(left.filesBelow("/")).toEqual(
    new Map([
      ["both", "text"],
      ["name", ""],
    ]),
  );
});

test("a folder's entries are durable without it, and lost with it", async () => {
  const disk = new ModelDisk();
  await disk.makeFolder("/folder", 0o700);
  await disk.create("/folder/file", 0o600);
  await disk.syncFolder("/folder");
  expect(disk.powerCut().namesIn("/")).toEqual([]);
  await disk.syncFolder("/");
  expect([...disk.powerCut().filesBelow("/").keys()]).toEqual(["folder/file"]);
});

test("a rename is durable when the folder that it moved into is synced, and leaves one name at any time", async () => {
  const disk = new ModelDisk();
  for (const folder of ["/from", "/to", "/from/moved"]) await disk.makeFolder(folder, 0o700);
  for (const folder of ["/", "/from"]) await disk.syncFolder(folder);
  await disk.rename("/from/moved", "/to/moved");
  await disk.syncFolder("/from");
  expect(namesOf(disk.powerCut())).toEqual([["moved"], []]);
  expect(namesOf(disk.powerCut(new Set(disk.unsynced())))).toEqual([[], ["moved"]]);
  await disk.syncFolder("/to");
  expect(namesOf(disk.powerCut())).toEqual([[], ["moved"]]);
});

test("two renames of one folder leave one name, whichever survives", async () => {
  const disk = new ModelDisk();
  for (const folder of ["/from", "/to", "/then", "/from/moved"]) await disk.makeFolder(folder, 0o700);
  for (const folder of ["/", "/from"]) await disk.syncFolder(folder);
  await disk.rename("/from/moved", "/to/moved");
  await disk.rename("/to/moved", "/then/moved");
  const [first, second] = disk.unsynced();
  for (const survivors of [[], [first], [second], [first, second]]) {
    const left = disk.powerCut(new Set(survivors.filter((it) => it !== undefined)));
    expect([...namesOf(left), left.namesIn("/then")].flat()).toEqual(["moved"]);
  }
  await disk.syncFolder("/then");
  await disk.syncFolder("/to");
  await disk.syncFolder("/from");
  expect([...namesOf(disk.powerCut()), disk.powerCut().namesIn("/then")]).toEqual([[], [], ["moved"]]);
});

function namesOf(disk: ModelDisk): string[][] {
  return [disk.namesIn("/from"), disk.namesIn("/to")];
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

/** Without the path of the temporary folder, which is part of the texts. */
function plain(answer: unknown, folder: string): unknown {
  return typeof answer === "string" ? answer.replaceAll(folder, "") : answer;
}
