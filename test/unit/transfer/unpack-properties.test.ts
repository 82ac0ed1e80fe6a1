import { rm } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { ZipFile } from "yazl";
import { writeZip, type ZipEntry } from "../../support/zip-writer.ts";
import { UNTOUCHED, Unpacking, wish } from "./unpacking.ts";

let unpacking: Unpacking;

beforeEach(async () => {
  unpacking = await Unpacking.open();
});

const content = fc.oneof(
  fc.uint8Array({ maxLength: 2_000 }),
  fc.tuple(fc.nat(255), fc.nat(600_000)).map(([byte, length]) => new Uint8Array(length).fill(byte)),
);
/** Any name that a header can hold, but not a folder's, which ends in a slash. */
const name = fc
  .oneof(
    fc.string({ unit: "grapheme" }),
    fc.string({ unit: "binary" }),
    fc.constantFrom("../x", "/x", "C:\\x", "a/b"),
  )
  .filter((text) => text.isWellFormed() && !text.endsWith("/"));
const file = fc.record({
  name,
  content: content.map((bytes) => Buffer.from(bytes)),
  method: fc.constantFrom(0, 8),
  zip64: fc.boolean(),
  descriptor: fc.boolean(),
});
const files = fc.uniqueArray(file, {
  maxLength: 8,
  selector: (one) => one.name.normalize("NFC").replaceAll("\\", "/"),
});

function wishes(entries: readonly { readonly name: string; readonly content: Buffer }[]) {
  return entries.map((entry, at) => wish(entry.name, entry.content, `f${at}`));
}

function contentsOf(entries: readonly { readonly content: Buffer }[]): Record<string, string> {
  return Object.fromEntries(entries.map((entry, at) => [`f${at}`, entry.content.toString("latin1")]));
}

async function clear(): Promise<void> {
  for (const target of Object.keys(await unpacking.contents())) await rm(join(unpacking.folder, target));
}

test("every honest archive is unpacked unchanged", async () => {
  const whole = fc.record({
    zip64: fc.boolean(),
    comment: fc.constantFrom(Buffer.alloc(0), Buffer.from("PK\x05")),
  });
  await fc.assert(
    fc
      .asyncProperty(files, whole, async (entries, form) => {
        await unpacking.unpack(writeZip(entries, form), wishes(entries));
        expect(await unpacking.contents()).toEqual(contentsOf(entries));
      })
      .afterEach(clear),
    { numRuns: 50 },
  );
});

test("archives of another writer are unpacked unchanged", async () => {
  const writable = files.map((entries) =>
    entries.filter(
      (entry) => entry.name !== "" && !/^[/\\]|^[a-z]:|(^|[/\\])\.\.([/\\]|$)|[/\\]$/i.test(entry.name),
    ),
  );
  await fc.assert(
    fc
      .asyncProperty(writable, async (entries) => {
        const zip = new ZipFile();
        for (const entry of entries) {
          zip.addBuffer(entry.content, entry.name, {
            compress: entry.method === 8,
            forceZip64Format: entry.zip64,
          });
        }
        zip.end({ comment: "", forceZip64Format: entries.some((entry) => entry.zip64) });
        await unpacking.unpack(await buffer(zip.outputStream as AsyncIterable<Buffer>), wishes(entries));
        expect(await unpacking.contents()).toEqual(contentsOf(entries));
      })
      .afterEach(clear),
    { numRuns: 50 },
  );
});

test("an archive with changed bytes is unpacked right or not at all", { timeout: 120_000 }, async () => {
  const entries: (ZipEntry & { readonly name: string; readonly content: Buffer })[] = [
    { name: "a.txt", content: Buffer.from("hello, hello, hello"), method: 8 },
    { name: "é", content: Buffer.from("world"), zip64: true, descriptor: true },
    { name: "empty", content: Buffer.alloc(0) },
  ];
  const archives = [false, true].map((zip64) =>
    writeZip(entries, { zip64, comment: Buffer.from("comment") }),
  );
  const changes = fc.array(
    fc.record({ at: fc.nat(), byte: fc.oneof(fc.constantFrom(0, 1, 0x7f, 0x80, 0xff), fc.nat(255)) }),
    { minLength: 1, maxLength: 5 },
  );
  await fc.assert(
    fc
      .asyncProperty(fc.constantFrom(...archives), changes, async (archive, changed) => {
        const zip = Buffer.from(archive);
        for (const { at, byte } of changed) zip[at % zip.length] = byte;
        const outcome = await unpacking.outcome(zip, wishes(entries));
        if (typeof outcome !== "string") expect(outcome).toEqual(contentsOf(entries));
        else {
          expect(outcome).toMatch(/^(ARCHIVE_WRONG|SIZE_MISMATCH|CHECKSUM_MISMATCH)$/);
          expect(await unpacking.contents()).toEqual({});
        }
        expect(await unpacking.surroundings()).toEqual(UNTOUCHED);
      })
      .afterEach(clear),
    { numRuns: 300 },
  );
});
