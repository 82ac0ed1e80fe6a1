import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import type { TransferFile } from "../../../src/model/transfer.ts";
import { type ChecksumRow, parseChecksums } from "../../../src/service/checksums.ts";

const NAMES = [
  "report.pdf",
  'with, comma and "quotes".txt',
  "semicolon; and\ttab.csv",
  "two\nlines.txt",
  "parentheses (SHA-256).zip",
  "Prüfbericht – final.docx",
  "日本語.txt",
  " leading and trailing ",
];

describe("the checksums file is parsed", () => {
  test("without quotes, if names fit into lines", async () => {
    const names = NAMES.filter((name) => !name.includes("\n"));
    for (const delimiter of [",", ";", "\t"]) {
      await expectParsed({ ...PLAIN_FORM, delimiter, quote: "none" }, 'He said "yes, but', names);
    }
  });

  test("in UTF-8 and UTF-16, also if nothing says so", async () => {
    for (const charset of ["utf-8", "utf-16le", "utf-16be"] as const) {
      for (const byteOrderMark of [true, false])
        await expectParsed({ ...PLAIN_FORM, charset, byteOrderMark }, "Grüße", NAMES);
    }
  });

  test("in the charset of the Content-Type, or without one in a usual charset", async () => {
    const text = 'Betreff,"Größe"\nDateiname,Prüfsumme\nfünf €.txt,0123456789abcdef (MD5)\n';
    const bytes = Buffer.from(text.replace("€", "\u0080"), "latin1");
    for (const contentType of ['text/csv; charset="windows-1252"', "text/csv"]) {
      const report = await parseChecksums(bytes, contentType, filesOf(["fünf €.txt"]));
      expect(report.missing).toEqual([]);
      expect(report.subject).toBe("Größe");
    }
  });

  test("despite a wrong charset in the Content-Type", async () => {
    await expectParsed(PLAIN_FORM, "Grüße", ["fünf.txt"], "text/csv; charset=iso-8859-1");
    await expectParsed(PLAIN_FORM, "Grüße", ["fünf.txt"], "text/csv; charset=no-such-charset");
  });

  test("with a subject line that is not CSV at all", async () => {
    const rows = "File Name,Checksum\na.txt,0123456789abcdef (MD5)\n";
    for (const line of ["Subject: Hello, world", 'Subject: "Hello', 'Subject,"unbalanced, and "more"']) {
      const report = await parseChecksums(Buffer.from(`${line}\n${rows}`), "text/csv", filesOf(["a.txt"]));
      expect(report.unlisted.length + report.missing.length).toBe(0);
      expect(report.subject).toMatch(/Hello|unbalanced/);
    }
  });

  test("with checksums switched off", async () => {
    const bytes = writeChecksumCsv(PLAIN_FORM, "Hi", [{ name: "a.txt", checksum: undefined }]);
    const report = await parseChecksums(bytes, "text/csv", filesOf(["a.txt"]));
    expect(report.byFileId.get("id0")).toEqual({ name: "a.txt", checksum: undefined });
  });

  test("with names in another Unicode form than in the file list", async () => {
    const bytes = writeChecksumCsv(PLAIN_FORM, "Hi", rowsOf(["Prüfung.txt".normalize("NFD")]));
    expect(
      (await parseChecksums(bytes, "text/csv", filesOf(["Prüfung.txt".normalize("NFC")]))).missing,
    ).toEqual([]);
  });

  test.each([
    ["a delimiter at the end of every line", "Subject,Hi,\nFile Name,Checksum,\na,0123456789abcdef (MD5),\n"],
    ["a last line of delimiters", "Subject,Hi\nFile Name,Checksum\na,0123456789abcdef (MD5)\n,\n"],
    ["digits in pairs", "File Name,Checksum\na,01:23:45:67:89:ab:cd:ef (MD5)\n"],
    ["base64", "File Name,Checksum\na,Ab1EQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= (SHA-256)\n"],
    ["few digits", "File Name,Checksum\na,Ab1c291c (CRC32)\n"],
    ["base64 without padding", `File Name,Checksum\na,${"Ab1+".repeat(16)} (SHA-384)\n`],
  ])("with %s", async (_form, text) => {
    const report = await parseChecksums(Buffer.from(text), "text/csv", filesOf(["a"]));
    expect([report.unlisted, report.missing]).toEqual([[], []]);
    expect(report.byFileId.get("id0")?.checksum?.value).toMatch(/^0123456789abcdef$|^Ab1/);
  });

  test("with checksums of unknown form, which are ignored and hide no other row", async () => {
    for (const odd of ["-", "null (SHA-256)", "0123456789abcdef", "0123456789abcdef ()"]) {
      const text = `Subject,Hi\nFile Name,Checksum\na,0123456789abcdef (MD5)\nb,${odd}\nc,0123456789abcdef (MD5)\n`;
      const report = await parseChecksums(Buffer.from(text), "text/csv", filesOf(["a", "b", "c"]));
      expect(report).toMatchObject({ subject: "Hi", unlisted: [], missing: [] });
      expect(report.byFileId.get("id1")?.checksum).toBeUndefined();
    }
  });

  test("I8 bounded: with the beginning of a long subject, never with half a character", async () => {
    const bytes = writeChecksumCsv(PLAIN_FORM, `x${"👍".repeat(600)}`, rowsOf(["a.txt"]));
    const { subject } = await parseChecksums(bytes, "text/csv", filesOf(["a.txt"]));
    expect(subject).toBe(`x${"👍".repeat(499)}\ufffd`);
  });

  test("despite quotes in names that are not doubled", async () => {
    const text = 'Subject,Hi\nFile Name,Checksum\n"a, "b" c.txt","0123456789abcdef (MD5)"\n';
    const report = await parseChecksums(Buffer.from(text), "text/csv", filesOf(['a, "b" c.txt']));
    expect([report.unlisted, report.missing]).toEqual([[], []]);
  });
});

describe("the subject is never read as a file", () => {
  const real = rowsOf(["report.pdf"]);
  const fake = `report.pdf,${"0".repeat(64)} (SHA-256)`;
  const hostile = [
    fake,
    `\n${fake}`,
    `x\nFile Name,Checksum\n${fake}`,
    `x\nFile Name,Checksum\n${fake}\n`,
    `"\n${fake}\n"`,
    `x"\n${fake}\n"`,
    `","\n${fake}`,
    `\r\nFile Name;Checksum\r\n${fake.replace(",", ";")}\r\n`,
    "File Name,Checksum",
    '"""',
    "\u0000\ufeff",
    "=cmd|' /C calc'!A0",
  ];
  for (const quote of ["all", "minimal", "none"] as const) {
    for (const [at, subject] of hostile.entries()) {
      test(`whatever it says (${at}), quoted: ${quote}`, async () => {
        const bytes = writeChecksumCsv({ ...PLAIN_FORM, quote }, subject, real);
        const report = await parseChecksums(bytes, "text/csv", filesOf(["report.pdf"]));
        expect([...report.byFileId.values()]).toEqual(real);
        expect(report.unlisted).toEqual([]);
      });
    }
  }

  test("for arbitrary subjects, names and forms", async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryForm, arbitraryNames, arbitrarySubject, async (form, names, subject) => {
        const bytes = writeChecksumCsv(form, subject, rowsOf(names));
        const report = await parseChecksums(bytes, `text/csv; charset=${form.charset}`, filesOf(names));
        expect([...report.byFileId.values()]).toEqual(rowsOf(names));
        expect([report.unlisted, report.missing]).toEqual([[], []]);
      }),
      { numRuns: 300 },
    );
  });
});

test("mismatches are reported: rows without a file, files without a row, and a second row for the same file", async () => {
  const bytes = writeChecksumCsv(PLAIN_FORM, "Hi", rowsOf(["a.txt", "a.txt", "stranger.txt"]));
  const report = await parseChecksums(bytes, "text/csv", filesOf(["a.txt", "b.txt"]));
  expect(report.unlisted.map((row) => row.name)).toEqual(["a.txt", "stranger.txt"]);
  expect(report.missing.map((file) => file.name)).toEqual(["b.txt"]);
});

test("mismatches are reported: another kind of file is a fault, not a guess", async () => {
  for (const text of [
    "",
    "\n\n",
    "<html><body>login</body></html>",
    "a,b,c\nd,e,f",
    "a.txt,0123456789 (MD5)\n",
  ]) {
    await expect(parseChecksums(Buffer.from(text), "text/csv", filesOf(["a.txt"]))).rejects.toThrow(Fault);
  }
});

test("mismatches are reported: any bytes give a report or a fault", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), fc.string(), async (bytes, contentType) => {
      try {
        await parseChecksums(bytes, contentType, filesOf(["a.txt"]));
      } catch (error) {
        expect(error).toBeInstanceOf(Fault);
      }
    }),
  );
});

const arbitraryForm: fc.Arbitrary<CsvForm> = fc.record({
  delimiter: fc.constantFrom(",", ";", "\t"),
  quote: fc.constantFrom("all", "minimal"),
  lineEnd: fc.constantFrom("\n", "\r\n", "\r"),
  labels: fc.constantFrom(
    ["Subject", "File Name", "Checksum"],
    ["Betreff", "Dateiname", "Prüfsumme"],
    ["件名", "ファイル名", "チェックサム"],
  ),
  charset: fc.constantFrom("utf-8", "utf-16le", "utf-16be"),
  byteOrderMark: fc.boolean(),
  lastLineEnds: fc.boolean(),
});

const nastyText = fc
  .array(
    fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 6 }),
      fc.constantFrom(",", ";", '"', "\n", "\r\n", "(", ")", "\t"),
    ),
  )
  .map((parts) => parts.join("").replaceAll("\ufeff", ""));

const arbitraryNames = fc.uniqueArray(
  fc.oneof(
    nastyText.map((text) => `${text}x`),
    fc.constantFrom("File Name", "Subject", ...NAMES),
  ),
  { maxLength: 6, selector: (name) => name.normalize("NFC") },
);

const arbitrarySubject = fc.option(
  fc.oneof(
    nastyText,
    nastyText.map((text) => `${text}\nFile Name,Checksum\nx,${"a".repeat(64)} (SHA-256)\n${text}`),
  ),
  { nil: undefined },
);

function rowsOf(names: readonly string[]): ChecksumRow[] {
  return names.map((name) => ({
    name,
    checksum: { value: createHash("sha256").update(name).digest("hex"), algorithm: "SHA-256" },
  }));
}

function filesOf(names: readonly string[]): TransferFile[] {
  return names.map((name, at) => ({ id: `id${at}`, name, bytes: 1, checksum: undefined }));
}

async function expectParsed(
  form: CsvForm,
  subject: string | undefined,
  names: readonly string[],
  contentType = "text/csv",
) {
  const report = await parseChecksums(
    writeChecksumCsv(form, subject, rowsOf(names)),
    contentType,
    filesOf(names),
  );
  expect([...report.byFileId.values()]).toEqual(rowsOf(names));
  expect([report.unlisted, report.missing]).toEqual([[], []]);
  expect(report.subject).toBe(subject || undefined);
}

/** Any form that a service might choose. */
interface CsvForm {
  readonly delimiter: string;
  readonly quote: "all" | "minimal" | "none";
  readonly lineEnd: string;
  readonly labels: readonly [subject: string, name: string, checksum: string];
  readonly charset: "utf-8" | "utf-16le" | "utf-16be";
  readonly byteOrderMark: boolean;
  readonly lastLineEnds: boolean;
}

const PLAIN_FORM: CsvForm = {
  delimiter: ",",
  quote: "minimal",
  lineEnd: "\n",
  labels: ["Subject", "File Name", "Checksum"],
  charset: "utf-8",
  byteOrderMark: false,
  lastLineEnds: true,
};

/** `subject`: a text, empty for a label without a value, `undefined` for no subject line at all. */
function writeChecksumCsv(
  form: CsvForm,
  subject: string | undefined,
  rows: readonly ChecksumRow[],
): Uint8Array {
  const [subjectLabel, nameLabel, checksumLabel] = form.labels;
  const lines = [
    ...(subject === undefined ? [] : [[subjectLabel, subject]]),
    [nameLabel, checksumLabel],
    ...rows.map(({ name, checksum }) => [name, checksum ? `${checksum.value} (${checksum.algorithm})` : ""]),
  ];
  const text = lines
    .map((cells) => cells.map((cell) => quote(cell, form)).join(form.delimiter))
    .join(form.lineEnd);
  return encode(form, text + (form.lastLineEnds ? form.lineEnd : ""));
}

function quote(cell: string, form: CsvForm): string {
  const needed = form.quote === "all" || (form.quote === "minimal" && /[",;\t\r\n]|^\s|\s$/.test(cell));
  return needed ? `"${cell.replaceAll('"', '""')}"` : cell;
}

function encode(form: CsvForm, text: string): Uint8Array {
  const marked = (form.byteOrderMark ? "\ufeff" : "") + text;
  if (form.charset === "utf-8") return Buffer.from(marked, "utf8");
  const bytes = Buffer.from(marked, "utf16le");
  return form.charset === "utf-16le" ? bytes : bytes.swap16();
}
