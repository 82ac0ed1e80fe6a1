import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { safeNames, safeSegment } from "../../../src/inbox/names.ts";

interface NamedFile {
  readonly id: string;
  readonly name: string;
}

const OURS = ["transfer.json", "SHA256SUMS", "message.eml", ".done"];
const RUNS = 2_000;

const DEVICES = ["CON", "prn", "Aux", "NUL", "COM0", "com9", "LPT¹", "CONIN$", "conout$"];
const TELLING = [
  ...["", "..", "C:", "ss", "e\u0301", "\ud800", "\udfff", "👍\u200d👍", "~0123abcd", "transfer", ".json"],
  ...["x.txt", ".tar.gz", "sha256sums", ...DEVICES],
  ...String.raw`. /\: ~-_aAéßẞİıiIſ日`,
  ..."\0\n\u009b\u202e\u200b\ufeff\u212a",
];

const piece = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...TELLING) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
  { weight: 1, arbitrary: fc.constantFrom(...TELLING).map((text) => text.repeat(130)) },
);
const hostileName = fc.oneof(
  fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join("")),
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 300 })
    .map((units) => String.fromCharCode(...units)),
);
const hostileList = fc.array(hostileName, { maxLength: 12 }).map(withIds);

/** Lists in which the names of later files are what earlier ones become, several times over. */
const foreseeing = fc
  .tuple(fc.array(hostileName, { minLength: 1, maxLength: 3 }), fc.array(fc.nat(), { maxLength: 12 }))
  .map(([names, picks]) => {
    const all = [...names];
    for (const pick of picks) {
      const mapped = [...safeNames(withIds(all), OURS).values()];
      all.push(mapped[pick % mapped.length] ?? "");
    }
    return withIds(all);
  });
const list = fc.oneof(hostileList, foreseeing);

function withIds(names: readonly string[]): NamedFile[] {
  return names.map((name, at) => ({ id: String(at), name }));
}

/** As the strictest file system would, worked out by other means than those under test. */
function fold(name: string): string {
  const visible = name.replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  return visible.normalize("NFC").toUpperCase().toLowerCase().normalize("NFC");
}

function expectPortable(name: string): void {
  expect(resolve("/inbox/transfer", name)).toBe(`/inbox/transfer/${name}`);
  expect(name).toBe(name.normalize("NFC"));
  expect(name.isWellFormed()).toBe(true);
  expect(name).not.toMatch(
    /[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Cs}\p{Zl}\p{Zp}/\\<>:"|?*]|^[-. ]|[. ]$|^$/u,
  );
  expect(name.split(".")[0]?.trim()).not.toMatch(/^(con|prn|aux|nul|(com|lpt)[0-9¹²³]|con(in|out)\$)$/i);
  expect(Buffer.byteLength(name)).toBeLessThanOrEqual(240);
}

describe("I5 no escape: whatever the names are", () => {
  test("each file gets one, that every file system can hold, inside the folder and not hidden there", () => {
    fc.assert(
      fc.property(list, (files) => {
        const names = safeNames(files, OURS);
        expect(names.size).toBe(files.length);
        for (const name of names.values()) expectPortable(name);
      }),
      { numRuns: RUNS },
    );
  });

  test("no two are one, and none is ours, however strictly they are compared", () => {
    fc.assert(
      fc.property(list, (files) => {
        const folded = [...safeNames(files, OURS).values(), ...OURS].map(fold);
        expect(new Set(folded).size).toBe(files.length + OURS.length);
      }),
      { numRuns: RUNS },
    );
  });

  test("the order of the list makes no difference", () => {
    const shuffled = list.chain((files) =>
      fc.tuple(
        fc.constant(files),
        fc.shuffledSubarray(files, { minLength: files.length, maxLength: files.length }),
      ),
    );
    fc.assert(
      fc.property(shuffled, ([files, others]) => {
        expect(safeNames(others, OURS)).toEqual(safeNames(files, OURS));
      }),
      { numRuns: RUNS },
    );
  });

  test("names that are safe already stay", () => {
    fc.assert(
      fc.property(list, (files) => {
        const safe = [...safeNames(files, OURS)].map(([id, name]) => ({ id, name }));
        expect(safeNames(safe, OURS)).toEqual(new Map(safe.map(({ id, name }) => [id, name])));
      }),
      { numRuns: RUNS },
    );
  });

  test("a segment can be held everywhere, and stays once it is safe", () => {
    fc.assert(
      fc.property(hostileName, (text) => {
        const segment = safeSegment(text);
        expectPortable(segment);
        expect(safeSegment(segment)).toBe(segment);
      }),
      { numRuns: RUNS },
    );
  });
});

describe("on a real file system", () => {
  let root: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "inlet-names-"));
  });

  afterEach(() => rm(root, { recursive: true }));

  test("every file can be made under its name, and read back", async () => {
    let count = 0;
    await fc.assert(
      fc.asyncProperty(list, async (files) => {
        count += 1;
        const folder = join(root, String(count), "transfer");
        await mkdir(folder, { recursive: true });
        const names = safeNames(files, OURS);
        for (const [id, name] of names) await writeFile(join(folder, name), id, { flag: "wx" });
        for (const [id, name] of names) expect(await readFile(join(folder, name), "utf8")).toBe(id);
        expect((await readdir(folder)).toSorted()).toEqual([...names.values()].toSorted());
        expect(await readdir(join(folder, ".."))).toEqual(["transfer"]);
      }),
      { numRuns: 400 },
    );
    expect((await readdir(root)).length).toBe(count);
  });
});
