/** I8 bounded: what a sender chooses costs time in proportion to its length, and never stops the other work for long. */
import { writeFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { composed, foldName } from "../../../src/base/fold-name.ts";
import { fileNameForm, textForm } from "../../../src/base/normal-form.ts";
import { safeNamesInTurns, safeSegment } from "../../../src/inbox/names.ts";
import { decideRoute, factsOf } from "../../../src/model/route.ts";
import { parseChecksums } from "../../../src/service/checksums.ts";
import { unpackZip } from "../../../src/transfer/unpack.ts";
import { countTurns } from "../../support/turns.ts";
import { writeZip } from "../../support/zip-writer.ts";
import { Unpacking, wish } from "../transfer/unpacking.ts";

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
    const turns = await countTurns(() => safeNamesInTurns(files, ["transfer.json"]));
    expect(turns).toBeGreaterThan(FILES / ITEMS_PER_TURN);
  });

  test("is compared with routes while other work runs", async () => {
    const route = { name: "r", action: "deliver", when: { file: ["*.xml"] } } as const;
    const facts = factsOf({ sender: "anna@supplier.example" }, files);
    const turns = await countTurns(() => decideRoute({ routes: [route], otherwise: "hold" }, facts));
    expect(turns).toBeGreaterThan(FILES / ITEMS_PER_TURN);
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

  test("in a ZIP, all of one name, is matched in few steps while other work runs", async () => {
    const unpacking = await Unpacking.open();
    try {
      const zip = writeZip(Array.from({ length: FILES }, () => ({ name: "same.txt", content: "x" })));
      let reads = 0;
      const wanted = Array.from({ length: FILES }, (_, at) => {
        const { checksums, ...file } = wish("same.txt", "x", `f${at}`);
        const counted = {
          get checksums() {
            reads++;
            return checksums;
          },
        };
        return Object.assign(counted, file);
      });
      await writeFile(unpacking.zipPath, zip);
      const limits = { maxEntries: FILES, maxBytes: FILES, deadlineMs: 2 ** 40, fileMode: 0o600 };
      const { signal } = new AbortController();
      const turns = await countTurns(() =>
        unpackZip(unpacking.zipPath, wanted, unpacking.folder, limits, signal),
      );
      expect(turns).toBeGreaterThan(FILES / ITEMS_PER_TURN);
      expect(reads).toBeLessThan(FILES * 10);
    } finally {
      await unpacking.close();
    }
  });
});

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
    const safe = [...(await safeNamesInTurns(names, [])).values()];
    expect(new Set(safe).size).toBe(2);
    for (const name of [...safe, safeSegment(`a${marks}`)]) expect(name.length).toBeLessThan(60);
  });

  test("stays as it is within what languages need", () => {
    const text = `a${marks.slice(0, 20)}b`;
    expect(composed(text)).toBe(text.normalize("NFC"));
    expect(foldName(text)).toBe(text.normalize("NFD"));
  });
});
