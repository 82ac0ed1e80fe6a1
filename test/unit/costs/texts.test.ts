/** I8 bounded: what a sender chooses costs time in proportion to its length, and never stops the other work for long. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { writeFinished } from "../../../src/base/durable.ts";
import { composed, foldName } from "../../../src/base/fold-name.ts";
import { onMachine, systemMachine } from "../../../src/base/machine.ts";
import { fileNameForm, textForm } from "../../../src/base/normal-form.ts";
import { type Contents, digestOf, formatManifest } from "../../../src/model/manifest.ts";
import { safeNames, safeSegment } from "../../../src/model/names.ts";
import { decideRoute, factsOf } from "../../../src/model/route.ts";
import { parseChecksums } from "../../../src/service/checksums.ts";
import { unpackZip } from "../../../src/transfer/unpack.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { countTurns } from "../../support/turns.ts";
import { writeZip } from "../../support/zip-writer.ts";
import { wish } from "../transfer/unpacking.ts";

const FILES = 2_000;
/** A loop yields at least once for this many items, by the clock of `countTurns`. */
const ITEMS_PER_TURN = 20;

describe("a long list of files", () => {
  const files = Array.from({ length: FILES }, (_, at) => ({
    id: `${at}`,
    name: `report ${at}.pdf`,
    bytes: 1,
  }));

  test("is named while other work runs", async () => {
    const turns = await countTurns(() => safeNames(files, ["transfer.json"]));
    expect(turns).toBeGreaterThan(FILES / ITEMS_PER_TURN);
  });

  test("is compared with routes while other work runs", async () => {
    const route = { name: "r", action: "deliver", when: { file: ["*.xml"] } } as const;
    const facts = factsOf({ sender: "anna@supplier.example" }, files);
    const turns = await countTurns(() => decideRoute({ routes: [route], otherwise: "hold" }, facts));
    expect(turns).toBeGreaterThan(FILES / ITEMS_PER_TURN);
  });

  test("gets the normal form of each name once, whatever the number of routes", async () => {
    const routes = Array.from({ length: 50 }, (_, at) => {
      return { name: `r${at}`, action: "deliver", when: { file: [`*.${at}`] } } as const;
    });
    const normalize = vi.spyOn(String.prototype, "normalize");
    const count = async (...[chosen, named]: [typeof routes, typeof files]) => {
      normalize.mockClear();
      const facts = factsOf({ sender: "anna@supplier.example" }, named);
      await decideRoute({ routes: chosen, otherwise: "hold" }, facts);
      return normalize.mock.calls.length;
    };
    try {
      const [one, all] = [routes.slice(0, 1), routes];
      const ofNames = (await count(one, files)) - (await count(one, []));
      expect(ofNames).toBeGreaterThan(FILES);
      expect((await count(all, files)) - (await count(all, []))).toBe(ofNames);
    } finally {
      normalize.mockRestore();
    }
  });

  test("is matched with its checksums while other work runs", async () => {
    const row = ({ name }: { readonly name: string }) =>
      `"${name}","${"0123456789abcdef".repeat(4)} (SHA-256)"\n`;
    const csv = Buffer.from(`"Name","Checksum"\n${files.map(row).join("")}`);
    const listed = files.map((file) => ({ ...file, checksum: undefined }));
    const turns = await countTurns(() => parseChecksums(csv, "text/csv", listed));
    // It is read, searched for its labels, and matched from both sides.
    expect(turns).toBeGreaterThan((4 * FILES) / ITEMS_PER_TURN);
  });

  test("is identified and written in the manifest while other work runs", async () => {
    const contents: Contents = {
      message: "none",
      files: files.map(({ name, bytes: size }) => {
        return { name, originalName: name, size, sha256: "a".repeat(64), verified: false };
      }),
    };
    expect(await countTurns(() => digestOf(contents))).toBeGreaterThan(FILES / ITEMS_PER_TURN);
    const text = () => formatManifest(makeRecord(), "NAME", contents);
    const written: number[] = [];
    const disk = { ...systemMachine.files, openFile: countWrites(written) };
    const path = join(await makeFolder(), "transfer.json");
    await onMachine({ ...systemMachine, files: disk }, () => writeFinished(path, text, 0o600));
    expect(Math.max(...written)).toBeLessThan(100_000);
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject(contents);
  });

  test("in a ZIP is matched and unpacked while other work runs", async () => {
    const folder = await makeFolder();
    const zipPath = join(await makeFolder(), "a.zip");
    await writeFile(zipPath, writeZip(files.map(({ name }) => ({ name, content: "x" }))));
    const wanted = files.map(({ name }, at) => wish(name, "x", `f${at}`));
    const { signal } = new AbortController();
    const turns = await countTurns(() => unpackZip(zipPath, wanted, folder, { fileMode: 0o600 }, signal));
    expect(turns).toBeGreaterThan(FILES / ITEMS_PER_TURN);
  });
});

/** Notes how much each call writes. */
function countWrites(written: number[]): typeof systemMachine.files.openFile {
  return async (...args) => {
    const file = await systemMachine.files.openFile(...args);
    return {
      ...file,
      write(content) {
        written.push(content.length);
        return file.write(content);
      },
    };
  };
}

describe("a run of combining marks, whose order takes time with the square of their number", () => {
  const marks = "\u0301\u0316".repeat(2_000);

  test.each(Object.entries({ composed, foldName, textForm, fileNameForm }))("is cut by %s", (_, form) => {
    const [plain, hidden] = [form(`a${marks}b`) ?? "", form(`a${marks.split("").join("\u200b")}b`) ?? ""];
    expect(plain).toMatch(/^.{10,40}b$/u);
    expect(form === composed ? "b" : hidden).toMatch(/^.{0,40}b$/u);
    expect(form(plain)).toBe(plain);
  });

  test("is cut in names, which still differ", async () => {
    const names = [`a${marks}`, `a${marks}\u0301`].map((name, at) => ({ id: `${at}`, name }));
    const safe = [...(await safeNames(names, [])).values()];
    expect(new Set(safe).size).toBe(2);
    for (const name of [...safe, safeSegment(`a${marks}`)]) expect(name.length).toBeLessThan(60);
  });

  test("stays as it is within what languages need", () => {
    const text = `a${marks.slice(0, 20)}b`;
    expect(composed(text)).toBe(text.normalize("NFC"));
    expect(foldName(text)).toBe(text.normalize("NFD"));
  });
});
