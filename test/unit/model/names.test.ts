/** I5 no escape: safe names for what senders choose, by examples and for any names. */
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { safeNames, safeSegment } from "../../../src/model/names.ts";

const OURS = ["transfer.json", "SHA256SUMS", "message.eml", ".done"];

async function named(...names: readonly string[]): Promise<string[]> {
  const files = names.map((name, at) => ({ id: `file-${at}`, name }));
  const safe = await safeNames(files, OURS);
  return files.map(({ id }) => safe.get(id) ?? "nothing");
}

/** The short mark of an original, worked out by other means than those under test. */
function mark(original: string): string {
  return createHash("sha256")
    .update(JSON.stringify([original]))
    .digest("hex")
    .slice(0, 8);
}

test.each([
  "report.pdf",
  "no extension",
  "Prüfbericht – final (2).docx",
  "日本語のファイル.txt",
  "100%~1.tar.gz",
  "console.log",
  "com10.txt",
  "LPT.txt",
  "nulls",
  "a.con",
  "a-b",
  "$HOME",
  "#1 'quoted' & [boxed]; really!.txt",
  "👍.txt",
  "x".repeat(240),
  "é".repeat(120),
])("a name that every file system can hold stays as it is: %.40s", async (name) =>
  expect(await named(name)).toEqual([name]),
);

test("a name that every file system can hold stays as it is in NFC", async () =>
  expect(await named("Pru\u0308fbericht.pdf")).toEqual(["Prüfbericht.pdf"]));

test.each<[string, string, string?]>([
  ["../../etc/passwd", "__.._etc_passwd"],
  ["..\\..\\boot.ini", "__.._boot", ".ini"],
  ["/etc/passwd", "_etc_passwd"],
  ["\\\\server\\share\\file", "__server_share_file"],
  ["report.pdf:hidden.exe", "report.pdf_hidden", ".exe"],
  ["nul\0byte.txt", "nul_byte", ".txt"],
  ["two\nlines\t\u001b[31m.txt", "two_lines__[31m", ".txt"],
  ["CON", "_CON"],
  ["con.txt", "_con", ".txt"],
  ["Con.tar.gz", "_Con", ".tar.gz"],
  ["NUL  .txt", "_NUL  ", ".txt"],
  ["COM¹.log", "_COM¹", ".log"],
  ["conin$", "_conin$"],
  ["trailing dot.", "trailing dot"],
  ["dots and spaces. . .", "dots and spaces"],
  ["gnp.exe\u202etxt.png", "gnp.exetxt", ".png"],
  ["I ❤\ufe0f you.txt", "I ❤ you", ".txt"],
  ["lone \ud800 surrogate.txt", "lone _ surrogate", ".txt"],
  ['<>:"|?*.txt', "_______", ".txt"],
  ["", "_"],
  ["..", "_"],
  ["transfer.json", "transfer", ".json"],
  ["sha256sums", "sha256sums"],
  ["mes\u00adsage.eml", "message", ".eml"],
  [".done", "_done"],
  [".hidden", "_hidden"],
  [".env.local", "_env", ".local"],
  ["-rf", "_rf"],
])(
  "a name that some file system cannot hold becomes a recognisable one %j",
  async (name, stem, extension = "") => {
    expect(await named(name)).toEqual([`${stem}~${mark(name)}${extension}`]);
  },
);

test("a name that some file system cannot hold becomes a recognisable one when it is too long, keeping a short extension and whole characters", async () => {
  expect(await named(`${"a".repeat(300)}.pdf`)).toEqual([
    `${"a".repeat(227)}~${mark(`${"a".repeat(300)}.pdf`)}.pdf`,
  ]);
  expect(await named("日".repeat(100))).toEqual([`${"日".repeat(77)}~${mark("日".repeat(100))}`]);
  const long = `a.${"b".repeat(300)}`;
  expect(await named(long)).toEqual([`a.${"b".repeat(229)}~${mark(long)}`]);
});

test("a name that some file system cannot hold becomes a recognisable one of a million characters without taking long", async () => {
  for (const part of [".", " ", "/", ". ", "a.", "CON", "\u200b", "e\u0301", "\ud800"]) {
    const [name = ""] = await named(`x${part.repeat(1_000_000 / part.length)}x`);
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(240);
  }
});

test("files with one name get long marks", async () => {
  const names = await named("a.txt", "a.txt", "a.txt");
  expect(new Set(names).size).toBe(3);
  for (const name of names) expect(name).toMatch(/^a~[0-9a-f]{16}\.txt$/);
  expect(await named("Report.pdf", "report.PDF", "other")).toEqual([
    `Report~${mark("Report.pdf")}.pdf`,
    `report~${mark("report.PDF")}.PDF`,
    "other",
  ]);
});

test.each([
  ["straße", "STRASSE"],
  ["ẞ", "ss"],
  ["σας", "ΣΑΣ"],
  ["ı", "I"],
  ["\u212a", "k"],
  ["ﬁn", "FIN"],
  ["é.txt", "e\u0301.txt"],
  ["a\u200bb", "ab\u200b"],
])("names that some file system takes for one both get marks: %j and %j", async (one, other) => {
  const names = await named(one, other);
  expect(names.every((name) => name.includes("~"))).toBe(true);
  expect(new Set(names).size).toBe(2);
});

test.each([
  ["orders@example.com", "orders@example.com"],
  ["", "_"],
  ["..", `_~${mark("..")}`],
  [".inlet", `_inlet~${mark(".inlet")}`],
  ["..hidden.txt", `_hidden~${mark("..hidden.txt")}.txt`],
  ["\u200b.hidden", `_hidden~${mark("\u200b.hidden")}`],
  ["a/b", `a_b~${mark("a/b")}`],
  ["Re: offer", `Re_ offer~${mark("Re: offer")}`],
  ["aux", `_aux~${mark("aux")}`],
  ["-rf@example.com", `_rf@example~${mark("-rf@example.com")}.com`],
])("a segment of a path %j is %j", (text, segment) => expect(safeSegment(text)).toBe(segment));

const RUNS = 500;

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

test("I5 no escape: whatever the names are, each file gets one of its own, which every file system can hold, inside the folder and not hidden there", async () => {
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

test("I5 no escape: whatever the names are, a segment can be held everywhere, and stays once it is safe", () => {
  fc.assert(
    fc.property(hostileName, (text) => {
      const segment = safeSegment(text);
      expectPortable(segment);
      expect(safeSegment(segment)).toBe(segment);
    }),
    { numRuns: RUNS },
  );
});
