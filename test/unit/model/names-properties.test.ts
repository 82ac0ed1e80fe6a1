import { resolve } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { safeNames, safeSegment } from "../../../src/model/names.ts";

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
/** The names of later files may be what earlier ones become, several times over. */
const list = fc.record({
  names: fc.array(hostileName, { maxLength: 12 }),
  foreseen: fc.oneof(fc.constant([]), fc.array(fc.nat(), { maxLength: 12 })),
});

async function filesOf({ names, foreseen }: typeof list extends fc.Arbitrary<infer List> ? List : never) {
  const all = [...names];
  for (const pick of foreseen) {
    const mapped = [...(await safeNames(withIds(all), OURS)).values()];
    all.push(mapped[pick % mapped.length] ?? "");
  }
  return withIds(all);
}

function withIds(names: readonly string[]) {
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
  test("each file gets one of its own, which every file system can hold, inside the folder and not hidden there", async () => {
    const shuffled = fc.tuple(list, fc.infiniteStream(fc.nat()));
    await fc.assert(
      fc.asyncProperty(shuffled, async ([input, order]) => {
        const files = await filesOf(input);
        const names = await safeNames(files, OURS);
        expect(names.size).toBe(files.length);
        for (const name of names.values()) expectPortable(name);
        // No two are one, and none is ours, however strictly they are compared.
        expect(new Set([...names.values(), ...OURS].map(fold)).size).toBe(files.length + OURS.length);
        // The order of the list makes no difference.
        const places = new Map(files.map((file) => [file, order.next().value]));
        const others = files.toSorted((one, other) => (places.get(one) ?? 0) - (places.get(other) ?? 0));
        expect(await safeNames(others, OURS)).toEqual(names);
        // Names that are safe already stay.
        const safe = [...names].map(([id, name]) => ({ id, name }));
        expect(await safeNames(safe, OURS)).toEqual(names);
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
