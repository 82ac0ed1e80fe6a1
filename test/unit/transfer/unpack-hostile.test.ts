import { deflateRawSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FaultCode } from "../../../src/base/fault-codes.ts";
import { Fault } from "../../../src/base/faults.ts";
import type { WantedEntry } from "../../../src/transfer/unpack-directory.ts";
import { writeZip, type ZipEntry, type ZipWhole } from "../../support/zip-writer.ts";
import { Unpacking, wish } from "./unpacking.ts";

const ZEROS = Buffer.alloc(64 * 1024 * 1024);
const NEVER_HUNG_MS = 15_000;
const A = { name: "a", content: "hello" };
const B = { name: "b", content: "world", method: 8 };
const OTHER_B = { ...B, content: "other" };
const AB = [wish("a", "hello"), wish("b", "world", "f1")];
const LINK = 0o120777 * 0x10000;
const FULL = 2n ** 64n - 1n;
const BLAKE9 = { algorithm: "BLAKE9", value: "00" };
const TWINS = [wish("a", "hello"), wish("b", "hello", "f1")];
const NESTED = [wish("outer", writeZip([A])), wish("a", "hello", "f1")];

const AFTER_B = Buffer.concat([deflateRawSync(Buffer.from("world")), Buffer.alloc(2_000_000)]);
const CUT_B = deflateRawSync(Buffer.from("world")).subarray(0, -1);
const INNER = { ...A, only: "directory", offset: 35 } as const;
const ALL_IN_COMMENT = writeZip([A, B], { base: writeZip([A, OTHER_B]).length });
const END_IN_COMMENT = Buffer.concat([writeZip([]).subarray(0, 20), Buffer.from("\x05\0")]);
const TWO_SPELLINGS = ["é", "e\u0301"].map((name) => ({ name, content: "x" }));
const COUNTLESS = Number.MAX_SAFE_INTEGER;

/** `A`, and `B` with these changes. */
const withB = (changes: Partial<ZipEntry>) => [A, { ...B, ...changes }];
const BOMB = withB({ content: ZEROS });

type Row = readonly [
  what: string,
  entries: readonly ZipEntry[],
  says: string,
  wanted?: readonly WantedEntry[],
];

/** Archives whose content is not as announced, by the code of the fault. */
const CONTENTS: Partial<Record<FaultCode, readonly Row[]>> = {
  ARCHIVE_WRONG: [
    ["an unknown entry", [A, B, { name: "c" }], '"c" is not in the list'],
    ["a way out of the folder", [A, B, { name: "../../../evil" }], '"../../../evil" is not in the list'],
    ["an absolute path", [A, B, { name: "/evil" }], '"/evil" is not in the list'],
    ["a name in another case", withB({ name: "B" }), '"B" is not in the list'],
    ["a missing entry", [A], '"b" is missing'],
    ["no entry at all", [], '"a" is missing'],
    ["an entry with bytes, but not in the directory", withB({ only: "bytes" }), '"b" is missing'],
    ["a repeated entry", [A, B, A], '"a" is there twice'],
    ["a repeated entry in another Unicode form", TWO_SPELLINGS, "is there twice", [wish("é", "x")]],
    ["a symbolic link", withB({ attributes: LINK }), '"b" is not a plain file'],
    ["a device", withB({ attributes: 0o020666 * 0x10000 }), '"b" is not a plain file'],
    ["a folder by its mode", withB({ attributes: 0o040755 * 0x10000 }), '"b" is not a plain'],
    ["a folder by its attribute", withB({ attributes: 0x10 }), '"b" is a folder'],
    ["a folder by its name", [A, B, { name: "c/" }], '"c/" is a folder'],
    ["an encrypted entry", withB({ flags: 0x801 }), '"b" is encrypted'],
    ["a strongly encrypted entry", withB({ flags: 0x841 }), "strong encryption"],
    ["an unknown compression", withB({ method: 93 }), '"b" is compressed in an unknown way (93)'],
    ["a wrong CRC", withB({ crc: 1 }), '"b" is damaged'],
    ["deflated bytes that are none", withB({ data: Buffer.alloc(20, 0xff) }), "invalid"],
    ["deflated bytes that break off", withB({ data: CUT_B }), "unexpected end of file"],
    ["bytes after the deflated ones", withB({ data: AFTER_B }), "longer than its content"],
    ["two entries with the same bytes", [A, { ...A, name: "b", offset: 0 }], "overlap", TWINS],
    ["an entry inside another", [{ name: "outer", content: writeZip([A]) }, INNER], "overlap", NESTED],
    ["an entry that begins where none is", withB({ offset: 37 }), "local file header signature"],
    ["an entry that ends outside", withB({ compressedBytes: 1_000_000 }), "before its last entry"],
    ["an entry beyond all numbers", withB({ zip64: true, offset: FULL }), "last entry"],
    ["a broken extra field", withB({ extra: Buffer.from([1, 0, 99, 0]) }), "extra field length"],
  ],
  CHECKSUM_MISMATCH: [
    ["other content of the same size", withB({ content: "w0rld" }), '"b" in the ZIP (SHA-256)'],
  ],
  ALGORITHM_UNKNOWN: [
    ["an unknown algorithm", [A], "BLAKE9", [{ ...wish("a", "hello"), checksums: [BLAKE9] }]],
  ],
  SIZE_MISMATCH: [
    ["a directory with another size", withB({ content: "worlds" }), '"b" in the ZIP: 6 bytes instead of 5'],
    ["a bomb", BOMB, '"b" in the ZIP: 67108864 bytes instead of 5'],
    ["a bomb with the announced size", withB({ content: ZEROS, bytes: 5 }), "more bytes instead of 5"],
    ["stored bytes beyond it", withB({ content: "world and more", bytes: 5, method: 0 }), "more bytes"],
    ["fewer bytes than the directory says", withB({ content: "wor", bytes: 5 }), "3 bytes instead of 5"],
    ["sizes beyond all numbers", withB({ zip64: FULL }), '"b"'],
  ],
};

/** Archives of `A` and `B` that are wrong as a whole. */
const WHOLES: readonly (readonly [what: string, whole: ZipWhole, says: string])[] = [
  ["a directory beyond all numbers", { zip64: true, directoryOffset: FULL }, "outside of itself"],
  ["an end beyond all numbers", { zip64: true, zip64EndOffset: FULL }, "outside of itself"],
  ["a directory beyond the end", { directoryOffset: 1_000_000 }, "outside of itself"],
  ["a directory that is none", { directoryOffset: 1 }, "directory file header"],
  ["more entries than there are", { entryCount: 3 }, "outside of itself"],
  ["fewer entries than there are", { entryCount: 1 }, '"b" is missing'],
  ["countless entries", { zip64: true, entryCount: COUNTLESS }, "directory file header"],
  ["bytes before it that it does not count", { prefix: Buffer.from("prefix") }, "directory file header"],
  ["bytes after it", { suffix: Buffer.from("suffix") }, "comment length"],
  ["an end in its comment", { comment: END_IN_COMMENT }, "comment length"],
];

const CASES = [
  ...Object.entries(CONTENTS).flatMap(([code, rows]) =>
    rows.map(([what, entries, says, wanted = AB]) => ({ what, zip: writeZip(entries), says, wanted, code })),
  ),
  ...WHOLES.map(([what, whole, says]) => ({
    what,
    zip: writeZip([A, B], whole),
    says,
    wanted: AB,
    code: "ARCHIVE_WRONG",
  })),
  {
    what: "a whole archive in its comment",
    zip: writeZip([A, OTHER_B], { comment: ALL_IN_COMMENT }),
    says: "two directories",
    wanted: AB,
    code: "ARCHIVE_WRONG",
  },
];

let unpacking: Unpacking;

beforeEach(async () => {
  unpacking = await Unpacking.open();
});

afterEach(async () => {
  expect(await unpacking.contents()).toEqual({});
});

describe("I5 no escape: an archive is refused, and leaves nothing behind, with", () => {
  test.each(CASES)("$what", { timeout: NEVER_HUNG_MS }, async ({ zip, says, wanted, code }) => {
    const fault = await faultOf(zip, wanted);
    expect(fault.message).toContain(says);
    expect(fault.code).toBe(code);
    expect(fault.verdict).toBe("quarantine");
  });

  test.each([
    ["zeros", Buffer.alloc(100_000)],
    ["text", Buffer.from("<html>Please log in</html>")],
    ["a million ends", Buffer.from("PK\x05\x06".repeat(100_000))],
  ])("%s", { timeout: NEVER_HUNG_MS }, async (_what, zip) => {
    expect((await faultOf(zip, AB)).code).toBe("ARCHIVE_WRONG");
  });
});

test("an archive that is cut short anywhere is refused", async () => {
  for (const zip64 of [false, true]) {
    const zip = writeZip([A, { ...B, zip64, descriptor: true }], { zip64, comment: Buffer.from("comment") });
    for (let bytes = 0; bytes < zip.length; bytes += 1) {
      expect((await faultOf(zip.subarray(0, bytes), AB)).code).toBe("ARCHIVE_WRONG");
    }
  }
});

test("a name in a message is short, and cannot control a terminal", async () => {
  const name = `\u001b[2J\u009b\u202e\ud83d\udc4d${"x".repeat(60_000)}`;
  const fault = await faultOf(writeZip([A, B, { name }]), AB);
  expect(fault.message).toMatch(/: "\\u001b\[2J\\u\{9b\}\\u\{202e\}👍x{60,80}…" is not in the list$/);
});

async function faultOf(zip: Buffer, wanted: readonly WantedEntry[]): Promise<Fault> {
  const outcome = await unpacking.unpack(zip, wanted).catch((error: unknown) => error);
  if (!(outcome instanceof Fault)) throw new Error(`not a fault: ${String(outcome)}`, { cause: outcome });
  return outcome;
}
