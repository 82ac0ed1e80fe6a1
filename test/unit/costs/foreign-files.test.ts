/** I8 bounded: what others put into an inbox costs neither memory nor time beyond the bounds of `base/bounds.ts`. */
import { hash } from "node:crypto";
import type { Dirent } from "node:fs";
import { chown, mkdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { INBOX_READ_BYTES } from "../../../src/base/bounds.ts";
import { onMachine, systemMachine } from "../../../src/base/machine.ts";
import { checkFolder, manifestInside } from "../../../src/cli/verify.ts";
import { holdDeliveries } from "../../../src/inbox/traces.ts";
import {
  type Contents,
  formatManifest,
  formatSums,
  type Manifest,
  manifestBound,
  readDeliveryId,
  readManifest,
  readSums,
} from "../../../src/model/manifest.ts";
import { makeFolder, runCommand } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";
import { countTurns } from "../../support/turns.ts";

const MIB = 1024 ** 2;
const NOBODY = 65_534;

const BEGINNING = `{\n  "version": 2,\n  "deliveryId": "${"a".repeat(32)}",\n`;

/** Runs `work`. Returns its result, and how many bytes each read of a file may have taken. */
async function noteReads<Result>(work: () => Promise<Result>) {
  const reads: number[] = [];
  const openFile: typeof systemMachine.files.openFile = async (...args) => {
    const file = await systemMachine.files.openFile(...args);
    const read: typeof file.read = (buffer, position) => {
      reads.push(buffer.byteLength);
      return file.read(buffer, position);
    };
    const readText = async () => {
      reads.push((await file.stat()).size);
      return file.readText();
    };
    return { ...file, read, readText };
  };
  const result = await onMachine({ ...systemMachine, files: { ...systemMachine.files, openFile } }, work);
  return { result, reads, bytes: reads.reduce((sum, bytes) => sum + bytes, 0) };
}

/** A folder with a file that begins like this, and takes no room on the disk beyond that. */
async function writeSparse(name: string, beginning: string, bytes: number): Promise<string> {
  const folder = await makeFolder();
  await writeFile(join(folder, name), beginning);
  await truncate(join(folder, name), bytes);
  return folder;
}

async function writeManifest(files: number, change = (text: string) => text) {
  const contents: Contents = {
    message: "none",
    files: Array.from({ length: files }, (_, at) => {
      const name = `report ${at} of the year.pdf`;
      return { name, originalName: name, size: 1, sha256: "a".repeat(64), verified: true };
    }),
  };
  const folder = await makeFolder();
  const text = change([...formatManifest(makeRecord(), "NAME", contents)].join(""));
  const sums = [...formatSums(contents)].join("");
  await writeFile(join(folder, "transfer.json"), text);
  await writeFile(join(folder, "SHA256SUMS"), sums);
  const [manifest, ofSums] = [text, sums].map((it) => ({
    bytes: Buffer.byteLength(it),
    sha256: hash("sha256", it),
  }));
  return { folder, contents, written: { manifest, sums: ofSums } as Manifest & never };
}

const refusal = (work: Promise<unknown>) => work.then(String, (error: Error) => error.message);

describe("whose delivery a folder holds", () => {
  test.each([
    ["of 512 MiB", BEGINNING, 512 * MIB],
    ["of 3 GiB", BEGINNING, 3 * 1024 * MIB],
  ])("is read from the beginning of a manifest %s", async (_, beginning, bytes) => {
    const folder = await writeSparse("transfer.json", beginning, bytes);
    const { written } = await writeManifest(1);
    for (const bound of [manifestBound({ files: 3 }), manifestBound({ files: 3, written })]) {
      const { result, bytes: taken } = await noteReads(() => readDeliveryId(folder, bound));
      expect(result).toEqual({
        id: "a".repeat(32),
        problem: expect.stringMatching(/larger than|bytes instead/),
      });
      expect(taken).toBeLessThanOrEqual(INBOX_READ_BYTES);
    }
  });

  test("does not wait for the writer of a pipe", async () => {
    const folder = await makeFolder();
    await runCommand("mkfifo", [join(folder, "transfer.json")]);
    const problem = "transfer.json is not a plain file";
    expect(await readDeliveryId(folder, manifestBound())).toEqual({ id: undefined, problem });
    expect(await refusal(readManifest(folder, manifestBound()))).toBe(problem);
  });

  test("is told with the owner of a manifest that another user wrote", { tags: ["system"] }, async () => {
    expect(process.getuid?.(), "another user takes root").toBe(0);
    const { folder } = await writeManifest(1);
    const bound = manifestBound({ files: 1 });
    expect(await readDeliveryId(folder, bound)).toMatchObject({ problem: undefined });
    await chown(join(folder, "transfer.json"), NOBODY, NOBODY);
    const problem = `transfer.json belongs to user ${NOBODY}`;
    expect(await readDeliveryId(folder, bound)).toMatchObject({ problem });
    expect(await refusal(readManifest(folder, bound))).toBe(problem);
  });
});

describe("a manifest", () => {
  test("that is larger than its files can make it is not read", async () => {
    const folder = await writeSparse("transfer.json", BEGINNING, 300 * MIB);
    const read = () => refusal(readManifest(folder, manifestBound({ files: 50_000 })));
    expect(await noteReads(read)).toEqual({
      result: "transfer.json is larger than any of ours",
      reads: [],
      bytes: 0,
    });
  });

  test("is given up at its first wrong entry", async () => {
    const files = `  "files": [\n${"    {\n    },\n".repeat(100)}`;
    for (const beginning of [BEGINNING, `${BEGINNING}${files}`, "[".repeat(1000)]) {
      const folder = await writeSparse("transfer.json", beginning, 300 * MIB);
      const { result, bytes } = await noteReads(() => refusal(readManifest(folder, manifestBound())));
      expect(result).toMatch(/is not (JSON|one of ours)|too long/);
      expect(bytes).toBeLessThan(3 * MIB);
    }
  });

  test("that is recorded is read only with this size and this content", async () => {
    const { folder, written, contents } = await writeManifest(3);
    const bound = manifestBound({ files: 3, written });
    expect(await readManifest(folder, bound)).toMatchObject(contents);
    const path = join(folder, "transfer.json");
    const text = [...formatManifest(makeRecord(), "NAME", contents)].join("");
    await writeFile(path, text.replace("report 1 of", "report 7 of"));
    expect(await refusal(readManifest(folder, bound))).toBe(
      "transfer.json is not the one that was delivered",
    );
    await writeFile(path, `${text}\n`);
    const { result, reads } = await noteReads(() => refusal(readManifest(folder, bound)));
    expect(result).toBe(`transfer.json has ${text.length + 1} bytes instead of ${text.length}`);
    expect(reads).toEqual([]);
  });

  test("of 50,000 files is read while other work runs, with and without its size in the record", async () => {
    const { folder, written, contents } = await writeManifest(50_000);
    for (const bound of [manifestBound({ files: 50_000 }), manifestBound({ files: 50_000, written })]) {
      const found: { manifest?: Manifest } = {};
      const turns = await countTurns(async () => {
        found.manifest = await readManifest(folder, bound);
      });
      expect(found.manifest?.files).toEqual(contents.files);
      // After each piece, by the clock of `countTurns`.
      expect(turns).toBeGreaterThan(10);
    }
  });

  test("with another layout is read too, and must have all commas", async () => {
    const compact = await writeManifest(20, (text) => JSON.stringify(JSON.parse(text)));
    expect(await readManifest(compact.folder, manifestBound())).toMatchObject(compact.contents);
    const torn = await writeManifest(20, (text) => text.replace("    },\n", "    }\n"));
    expect(await refusal(readManifest(torn.folder, manifestBound()))).toBe("transfer.json is not JSON");
    const twice = await writeManifest(20, (text) => text.replace(/\n {2}"files".*\]/s, "$&,$&"));
    expect(await refusal(readManifest(twice.folder, manifestBound()))).toBe("transfer.json is not JSON");
  });
});

describe("sums", () => {
  test("that are larger than the files of the manifest can make them are not read", async () => {
    const folder = await writeSparse("SHA256SUMS", "", 300 * MIB);
    expect(await noteReads(() => refusal(readSums(folder, 50_000)))).toMatchObject({
      result: "SHA256SUMS is larger than any of ours",
      bytes: 0,
    });
  });

  test("are read in pieces", async () => {
    const { folder } = await writeManifest(50_000);
    const { result, reads } = await noteReads(() => readSums(folder, 50_000));
    expect(result.size).toBe(50_000);
    expect(Math.max(...reads)).toBe(INBOX_READ_BYTES);
  });
});

test("inlet verify tells a huge manifest and huge sums, and does not read them", async () => {
  const { folder } = await writeManifest(1);
  await truncate(join(folder, "SHA256SUMS"), 300 * MIB);
  const check = () => checkFolder(manifestInside(folder), new Set(), () => {}, SIGNAL);
  const sums = await noteReads(check);
  expect(sums.result).toMatchObject({ status: "damaged", problem: "SHA256SUMS is larger than any of ours" });
  await truncate(join(folder, "transfer.json"), 512 * MIB);
  const manifest = await noteReads(check);
  expect(manifest.result).toMatchObject({ problem: "transfer.json is larger than any of ours" });
  expect(sums.bytes + manifest.bytes).toBeLessThan(MIB);
});

test("inlet verify names a bounded number of files that nobody delivered", async () => {
  const { folder } = await writeManifest(0);
  for (let at = 0; at < 1_010; at++) await writeFile(join(folder, `${at}`), "");
  const { files } = await checkFolder(manifestInside(folder), new Set(), () => {}, SIGNAL);
  expect([files.length, files.at(-1)]).toEqual([1_001, { name: "", status: "extra", detail: "and more" }]);
});

test("the search for earlier deliveries ends in a tree without an end, while other work runs", async () => {
  let entries = 0;
  const opendir = async () =>
    (async function* () {
      for (;;) {
        entries++;
        const isDirectory = () => true;
        yield { name: `${entries}`, isDirectory, isFile: () => false } as unknown as Dirent;
      }
    })();
  const files = { ...systemMachine.files, opendir: opendir as never };
  const found = onMachine({ ...systemMachine, files }, () =>
    holdDeliveries([{ inbox: "/inbox", layout: "{mailbox}/{sender}" }]),
  );
  expect([await found, entries]).toEqual([true, 100_000]);
});

test("a folder that was removed meanwhile holds no deliveries", async () => {
  const folder = await makeFolder();
  await mkdir(join(folder, "m"));
  await rm(folder, { recursive: true });
  expect(await holdDeliveries([{ inbox: folder, layout: "{mailbox}" }])).toBe(false);
});
