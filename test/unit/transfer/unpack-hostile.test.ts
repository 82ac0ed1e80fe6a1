import { deflateRawSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
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

interface Case {
  readonly entries: readonly ZipEntry[];
  readonly whole?: ZipWhole;
  readonly says: string;
  readonly code?: string;
  readonly wanted?: readonly WantedEntry[];
}

const CASES: Readonly<Record<string, Case>> = {
  "an unknown entry": { entries: [A, B, { name: "c" }], says: '"c" is not in the list' },
  "a way out of the folder": {
    entries: [A, B, { name: "../../../evil", content: "x" }],
    says: '"../../../evil" is not in the list',
  },
  "an absolute path": { entries: [A, B, { name: "/evil" }], says: '"/evil" is not in the list' },
  "a name in another case": { entries: [A, { ...B, name: "B" }], says: '"B" is not in the list' },
  "a missing entry": { entries: [A], says: '"b" is missing' },
  "no entry at all": { entries: [], says: '"a" is missing' },
  "an entry with bytes, but not in the directory": {
    entries: [A, { ...B, only: "bytes" }],
    says: '"b" is missing',
  },
  "a repeated entry": { entries: [A, B, A], says: '"a" is there twice' },
  "a repeated entry in another Unicode form": {
    entries: [
      { name: "é", content: "x" },
      { name: "e\u0301", content: "x" },
    ],
    wanted: [wish("é", "x")],
    says: "is there twice",
  },
  "a symbolic link": { entries: [A, { ...B, attributes: LINK }], says: '"b" is not a plain file' },
  "a device": { entries: [A, { ...B, attributes: 0o020666 * 0x10000 }], says: '"b" is not a plain file' },
  "a folder by its mode": {
    entries: [A, { ...B, attributes: 0o040755 * 0x10000 }],
    says: '"b" is not a plain',
  },
  "a folder by its attribute": { entries: [A, { ...B, attributes: 0x10 }], says: '"b" is a folder' },
  "a folder by its name": { entries: [A, B, { name: "c/" }], says: '"c/" is a folder' },
  "an encrypted entry": { entries: [A, { ...B, flags: 0x801 }], says: '"b" is encrypted' },
  "a strongly encrypted entry": { entries: [A, { ...B, flags: 0x841 }], says: "strong encryption" },
  "an unknown compression": {
    entries: [A, { ...B, method: 93 }],
    says: '"b" is compressed in an unknown way (93)',
  },
  "a wrong CRC": { entries: [A, { ...B, crc: 1 }], says: '"b" is damaged' },
  "other content of the same size": {
    entries: [A, { ...B, content: "w0rld" }],
    code: "CHECKSUM_MISMATCH",
    says: '"b" in the ZIP (SHA-256)',
  },
  "an unknown algorithm": {
    entries: [A],
    wanted: [{ ...wish("a", "hello"), checksums: [{ algorithm: "BLAKE9", value: "00" }] }],
    code: "ALGORITHM_UNKNOWN",
    says: "BLAKE9",
  },
  "a directory with another size": {
    entries: [A, { ...B, content: "worlds" }],
    code: "SIZE_MISMATCH",
    says: '"b" in the ZIP: 6 bytes instead of 5',
  },
  "a bomb": {
    entries: [A, { ...B, content: ZEROS }],
    code: "SIZE_MISMATCH",
    says: '"b" in the ZIP: 67108864 bytes instead of 5',
  },
  "a bomb with the announced size in the directory": {
    entries: [A, { ...B, content: ZEROS, bytes: 5 }],
    code: "SIZE_MISMATCH",
    says: '"b" in the ZIP: more bytes instead of 5',
  },
  "stored bytes beyond the announced size": {
    entries: [A, { name: "b", content: "world and more", bytes: 5 }],
    code: "SIZE_MISMATCH",
    says: '"b" in the ZIP: more bytes instead of 5',
  },
  "fewer bytes than the directory says": {
    entries: [A, { ...B, content: "wor", bytes: 5 }],
    code: "SIZE_MISMATCH",
    says: '"b" in the ZIP: 3 bytes instead of 5',
  },
  "deflated bytes that are none": { entries: [A, { ...B, data: Buffer.alloc(20, 0xff) }], says: "invalid" },
  "deflated bytes that break off": {
    entries: [A, { ...B, data: deflateRawSync(Buffer.from("world")).subarray(0, -1) }],
    says: "unexpected end of file",
  },
  "bytes after the deflated ones": {
    entries: [
      A,
      { ...B, data: Buffer.concat([deflateRawSync(Buffer.from("world")), Buffer.alloc(2_000_000)]) },
    ],
    says: "longer than its content",
  },
  "two entries with the same bytes": {
    entries: [A, { name: "b", content: "hello", offset: 0 }],
    wanted: [wish("a", "hello"), wish("b", "hello", "f1")],
    says: "overlap",
  },
  "an entry inside another": {
    entries: [
      { name: "outer", content: writeZip([A]) },
      { ...A, only: "directory", offset: 35 },
    ],
    wanted: [wish("outer", writeZip([A])), wish("a", "hello", "f1")],
    says: "overlap",
  },
  "an entry that begins where none is": {
    entries: [A, { ...B, offset: 37 }],
    says: "local file header signature",
  },
  "an entry that ends after the archive": {
    entries: [A, { ...B, compressedBytes: 1_000_000 }],
    says: "ends before its last entry",
  },
  "an entry beyond all numbers": { entries: [A, { ...B, zip64: true, offset: FULL }], says: "last entry" },
  "sizes beyond all numbers": { entries: [A, { ...B, zip64: FULL }], code: "SIZE_MISMATCH", says: '"b"' },
  "a directory beyond all numbers": {
    entries: [A, B],
    whole: { zip64: true, directoryOffset: FULL },
    says: "outside of itself",
  },
  "an end beyond all numbers": {
    entries: [A, B],
    whole: { zip64: true, zip64EndOffset: FULL },
    says: "outside of itself",
  },
  "a directory beyond the end": {
    entries: [A, B],
    whole: { directoryOffset: 1_000_000 },
    says: "outside of itself",
  },
  "a directory that is none": {
    entries: [A, B],
    whole: { directoryOffset: 1 },
    says: "directory file header",
  },
  "more entries than there are": { entries: [A, B], whole: { entryCount: 3 }, says: "outside of itself" },
  "fewer entries than there are": { entries: [A, B], whole: { entryCount: 1 }, says: '"b" is missing' },
  "countless entries": {
    entries: [A, B],
    whole: { zip64: true, entryCount: Number.MAX_SAFE_INTEGER },
    says: "directory file header",
  },
  "bytes before it that it does not count": {
    entries: [A, B],
    whole: { prefix: Buffer.from("prefix") },
    says: "directory file header",
  },
  "bytes after it": { entries: [A, B], whole: { suffix: Buffer.from("suffix") }, says: "comment length" },
  "an end in its comment": {
    entries: [A, B],
    whole: { comment: Buffer.concat([writeZip([]).subarray(0, 20), Buffer.from("\x05\0")]) },
    says: "comment length",
  },
  "a whole archive in its comment": {
    entries: [A, OTHER_B],
    whole: { comment: writeZip([A, B], { base: writeZip([A, OTHER_B]).length }) },
    says: "two directories",
  },
  "a broken extra field": {
    entries: [A, { ...B, extra: Buffer.from([1, 0, 99, 0]) }],
    says: "extra field length",
  },
};

let unpacking: Unpacking;

beforeEach(async () => {
  unpacking = await Unpacking.open();
});

afterEach(async () => {
  expect(await unpacking.contents()).toEqual({});
});

describe("I5 no escape: an archive is refused, and leaves nothing behind, with", () => {
  for (const [what, { entries, whole, says, code = "ARCHIVE_WRONG", wanted = AB }] of Object.entries(CASES)) {
    test(what, { timeout: NEVER_HUNG_MS }, async () => {
      const fault = await faultOf(writeZip(entries, whole), wanted);
      expect(fault.message).toContain(says);
      expect(fault.code).toBe(code);
      expect(fault.verdict).toBe("quarantine");
    });
  }

  for (const [what, zip] of [
    ["nothing in it", Buffer.alloc(0)],
    ["a single byte", Buffer.from("P")],
    ["zeros", Buffer.alloc(100_000)],
    ["text", Buffer.from("<html>Please log in</html>")],
    ["a million ends", Buffer.from("PK\x05\x06".repeat(100_000))],
  ] as const) {
    test(what, { timeout: NEVER_HUNG_MS }, async () => {
      expect((await faultOf(zip, AB)).code).toBe("ARCHIVE_WRONG");
    });
  }
});

test("an archive that is cut short anywhere is refused", { timeout: NEVER_HUNG_MS }, async () => {
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
