/** What is kept of a ZIP that broke off: whole files only, wherever it broke, and whatever else it holds. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { salvageZip } from "../../../src/transfer/salvage.ts";
import type { WantedEntry } from "../../../src/transfer/unpack-directory.ts";
import { SIGNAL } from "../../support/service.ts";
import { writeZip, type ZipEntry } from "../../support/zip-writer.ts";
import { sha256, Unpacking, wish } from "./unpacking.ts";

/** Salvages the bytes. Returns the names that were added, after a look at their content. */
async function salvage(
  { zipPath, folder }: Unpacking,
  zip: Buffer,
  wanted: readonly WantedEntry[],
  known: readonly string[] = [],
): Promise<string[]> {
  await writeFile(zipPath, zip);
  const sums = new Map<string, string>();
  const has = ({ name }: WantedEntry) => known.includes(name);
  const add = ({ name }: WantedEntry, sum: string) => void sums.set(name, sum);
  await salvageZip(zipPath, wanted, folder, { fileMode: 0o640, has, add }, SIGNAL);
  for (const [name, sum] of sums) expect(sha256(await readFile(join(folder, name)))).toBe(sum);
  return [...sums.keys()];
}

const LARGE = Buffer.from(Array.from({ length: 120_000 }, (_, at) => `${at * 7919}`).join(" "));
const FORMS: readonly Partial<ZipEntry>[] = [
  {},
  { method: 8 },
  { descriptor: true },
  { method: 8, descriptor: true },
  { method: 8, descriptor: true, zip64: true },
  { zip64: true },
];

test("every file that has arrived whole is kept, wherever the ZIP broke off", async () => {
  const entries = FORMS.map((form, at) => ({ ...form, name: `ü${at}`, content: "text ".repeat(at) }));
  const wanted = entries.map(({ name, content }, at) => wish(name, content, `f${at}`));
  const zip = writeZip(entries);
  // Where the content of each ends.
  const ends = entries.map((_, at) => {
    const before = writeZip(entries.slice(0, at + 1).map((entry) => ({ ...entry, only: "bytes" })));
    const descriptor = entries[at]?.descriptor ? (entries[at]?.zip64 ? 24 : 16) : 0;
    return before.length - 22 - descriptor;
  });
  for (let cut = 0; cut <= zip.length; cut++) {
    const unpacking = await Unpacking.open();
    const kept = await salvage(unpacking, zip.subarray(0, cut), wanted);
    const whole = wanted.filter((_, at) => (ends[at] ?? 0) <= cut).map(({ name }) => name);
    expect([cut, kept]).toEqual([cut, whole]);
  }
});

test("large files are kept, too, and those that are there already are not written again", async () => {
  for (const form of FORMS) {
    const entries = ["a", "b", "c"].map((name) => ({ ...form, name, content: LARGE }));
    const wanted = entries.map(({ name, content }) => wish(name, content, name));
    const unpacking = await Unpacking.open();
    const zip = writeZip(entries);
    expect(await salvage(unpacking, zip.subarray(0, zip.length * 0.9), wanted, ["a"])).toEqual(["b"]);
    expect(await readdir(unpacking.folder)).not.toContain("a");
  }
});

const A = { name: "a", content: "hello" };
const B = { name: "b", content: "world", method: 8 };
const AB = [wish("a", "hello", "a"), wish("b", "world", "b")];

test.each<[string, Buffer, readonly WantedEntry[], readonly string[]]>([
  ["a file that is not wanted", writeZip([A, { name: "../x" }, B]), AB, ["a"]],
  ["a repeated file", writeZip([A, A, B]), AB, ["a"]],
  ["an encrypted file", writeZip([{ ...A, flags: 0x801 }, B]), AB, []],
  ["an unknown compression", writeZip([A, { ...B, method: 93 }]), AB, ["a"]],
  ["another content", writeZip([{ ...A, content: "hallo" }, B]), AB, []],
  ["a content that is too long", writeZip([A, { ...B, content: Buffer.alloc(50_000_000) }]), AB, ["a"]],
  ["broken deflated bytes", writeZip([A, { ...B, data: Buffer.from([0xff, 0xff]) }]), AB, ["a"]],
  ["bytes before the first file", writeZip([A, B], { prefix: Buffer.from("x") }), AB, []],
  ["a file without a checksum", writeZip([A, B]), [{ ...wish("a", "hello", "a"), checksums: [] }], []],
  ["nothing", Buffer.alloc(0), AB, []],
  ["a page", Buffer.from("<html>".repeat(100)), AB, []],
])("%s ends the search", async (_, zip, wanted, kept) => {
  expect(await salvage(await Unpacking.open(), zip, wanted)).toEqual(kept);
});
