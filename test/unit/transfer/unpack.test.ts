import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { beforeEach, describe, expect, test } from "vitest";
import { onMachine, systemMachine } from "../../../src/base/machine.ts";
import { extraField, writeZip } from "../../support/zip-writer.ts";
import { sha256, Unpacking, wish } from "./unpacking.ts";

let unpacking: Unpacking;

beforeEach(async () => {
  unpacking = await Unpacking.open();
});

test("an honest archive is unpacked with a comment, after other bytes that its offsets include, and with an empty deflated file", async () => {
  const prefix = Buffer.from("#!/bin/sh\n");
  const zip = writeZip([{ name: "a", method: 8, data: Buffer.alloc(0) }], {
    prefix,
    base: prefix.length,
    comment: Buffer.from("PK made by a service"),
  });
  await unpacking.unpack(zip, [wish("a", "")]);
  expect(await unpacking.contents()).toEqual({ f0: "" });
});

test("an honest archive is unpacked by its directory, whatever the local headers say, into files that only their owner can read", async () => {
  const local = { name: "../../evil", crc: 1, compressedBytes: 2, bytes: 3, method: 99, flags: 0 };
  const entry = { name: "a", content: "hello", method: 8, attributes: 0o104777 * 0x10000, local };
  await unpacking.unpack(writeZip([entry]), [wish("a", "hello")]);
  expect(await unpacking.contents()).toEqual({ f0: "hello" });
  expect(unpacking.digests.get("f0")).toBe(sha256("hello"));
  expect((await stat(join(unpacking.folder, "f0"))).mode & 0o7777).toBe(0o600);
});

describe("entries are found by name", () => {
  const cp437 = Buffer.from([0x47, 0x72, 0x94, 0xe1, 0x65]);
  for (const [what, entry, originalName] of [
    ["in UTF-8 that says so", { name: "Größe" }, "Größe"],
    ["in UTF-8 that does not", { name: "Größe", flags: 0 }, "Größe"],
    ["in the old code page", { name: cp437, flags: 0 }, "Größe"],
    ["in a Unicode field beside it", withUnicodeName("Gr__e", "Größe"), "Größe"],
    ["in another Unicode form", { name: "Gro\u0308ße" }, "Größe"],
    ["in another Unicode form, the other way round", { name: "Größe" }, "Gro\u0308ße"],
    ["with slashes for backslashes", { name: "a/b/c.txt" }, "a\\b\\c.txt"],
    ["with backslashes for slashes", { name: "a\\b\\c.txt" }, "a/b/c.txt"],
    ["that would lead elsewhere", { name: "../../../evil" }, "../../../evil"],
    ["that is absolute", { name: "/etc/passwd" }, "/etc/passwd"],
    ["with a drive", { name: "C:\\evil" }, "C:\\evil"],
    ["that is empty", { name: "" }, ""],
  ] as const) {
    test(what, async () => {
      await unpacking.unpack(writeZip([{ ...entry, content: "x" }]), [wish(originalName, "x")]);
      expect(await unpacking.contents()).toEqual({ f0: "x" });
    });
  }

  test("exactly, before any other spelling of it", async () => {
    const zip = writeZip([
      { name: "e\u0301", content: "decomposed" },
      { name: "é", content: "composed" },
    ]);
    await unpacking.unpack(zip, [wish("é", "composed"), wish("e\u0301", "decomposed", "f1")]);
    expect(await unpacking.contents()).toEqual({ f0: "composed", f1: "decomposed" });
  });

  test("or not at all, if several files have one name", async () => {
    const twin = { name: "a", content: "twin" };
    const wanted = [wish("a", "twin"), wish("a", "twin", "f1")];
    expect(await unpacking.outcome(writeZip([twin, twin]), wanted)).toBe("ARCHIVE_WRONG");
  });
});

describe("the service's own list of checksums", () => {
  const file = { name: "a", content: "x" };
  const extra = { name: "checksums.csv", content: "y" };

  test("is skipped at any position", async () => {
    for (const entries of [
      [file, extra],
      [extra, file],
    ]) {
      expect(await unpacking.outcome(writeZip(entries), [wish("a", "x")], { allowExtra: true })).toEqual({
        f0: "x",
      });
    }
  });

  test("is no excuse for a second, a repeated or a missing entry, or a link", async () => {
    const allowExtra = true;
    for (const entries of [
      [file, extra, { ...extra, name: "other" }],
      [file, file],
      [extra],
      [file, { ...extra, attributes: 0o120777 * 0x10000 }],
    ]) {
      expect(await unpacking.outcome(writeZip(entries), [wish("a", "x")], { allowExtra })).toBe(
        "ARCHIVE_WRONG",
      );
    }
  });
});

describe("an existing entry with a target's name", () => {
  const zip = writeZip([{ name: "a", content: "new" }]);

  test("is replaced if an earlier attempt left it", async () => {
    await writeFile(join(unpacking.folder, "f0"), "something longer from before");
    await unpacking.unpack(zip, [wish("a", "new")]);
    expect(await unpacking.contents()).toEqual({ f0: "new" });
  });

  test("is not followed if it is a link, and not removed if it is a folder", async () => {
    const elsewhere = join(unpacking.folder, "elsewhere");
    await writeFile(elsewhere, "old");
    await symlink(elsewhere, join(unpacking.folder, "f0"));
    await mkdir(join(unpacking.folder, "f1"));
    await unpacking.unpack(zip, [wish("a", "new")]);
    expect(await unpacking.outcome(zip, [wish("a", "new", "f1")])).toBe("DISK_REFUSED");
    expect([await readFile(elsewhere, "utf8"), await readFile(join(unpacking.folder, "f0"), "utf8")]).toEqual(
      ["old", "new"],
    );
  });

  test("is never another file of the same archive", async () => {
    const two = writeZip([
      { name: "a", content: "x" },
      { name: "b", content: "y" },
    ]);
    expect(await unpacking.outcome(two, [wish("a", "x"), wish("b", "y")])).toBe("TARGET_EXISTS");
    expect(await unpacking.contents()).toEqual({});
  });

  test("is never outside the folder", async () => {
    for (const target of ["", ".", "..", "../evil", "/evil", "x/y", "x/", "nul\0"]) {
      await expect(unpacking.unpack(zip, [wish("a", "new", target)])).rejects.toThrow("no plain file name");
    }
  });
});

describe("unpacking ends", () => {
  const zeros = Buffer.alloc(64 * 1024 * 1024);
  const wanted = [{ ...wish("zeros", ""), bytes: zeros.length, checksums: [] }];

  for (const method of [0, 8]) {
    const zip = writeZip([{ name: "zeros", content: zeros, method }]);
    const how = method === 0 ? "stored" : "deflated";

    test(`when it takes too long, ${how}`, async () => {
      const hasty = { ...systemMachine, setTimeout: (work: () => void) => systemMachine.setTimeout(work, 5) };
      await expect(onMachine(hasty, () => unpacking.unpack(zip, wanted))).rejects.toMatchObject({
        code: "ARCHIVE_WRONG",
        message: expect.stringContaining("takes too long"),
      });
      expect(await unpacking.contents()).toEqual({});
    });

    test(`when it is stopped, before or meanwhile, ${how}`, async () => {
      expect(await unpacking.outcome(zip, wanted, {}, AbortSignal.abort())).toBe("STOPPED");
      const stop = new AbortController();
      const outcome = unpacking.outcome(zip, wanted, {}, stop.signal);
      while ((await readdir(unpacking.folder)).length === 0) await new Promise(setImmediate);
      stop.abort();
      expect(await outcome).toBe("STOPPED");
      expect(await unpacking.contents()).toEqual({});
    });
  }

  test("with the disk's error, if the folder is gone", async () => {
    const small = writeZip([{ name: "a" }]);
    const gone = Object.assign(Object.create(unpacking), { folder: join(unpacking.root, "gone") });
    await expect(gone.unpack(small, [wish("a", "")])).rejects.toMatchObject({
      code: "DISK_REFUSED",
      message: expect.stringContaining("gone (ENOENT)"),
    });
  });
});

/** In the form of Info-ZIP. */
function withUnicodeName(name: string, unicode: string) {
  const nameCrc = Buffer.alloc(5, 1);
  nameCrc.writeUInt32LE(crc32(name), 1);
  return { name, flags: 0, extra: extraField(0x7075, Buffer.concat([nameCrc, Buffer.from(unicode)])) };
}
