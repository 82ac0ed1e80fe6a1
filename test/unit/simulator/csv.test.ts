/** The checksums file, in every style that a service might use. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { CsvStyle, FilePlan } from "../../../simulator/scenario.ts";
import { simulateOne } from "./client.ts";

const sha1 = createHash("sha1").update("x").digest("hex");
const files: FilePlan[] = [
  { name: "plain", text: "x" },
  { name: 'é, ";"', text: "x" },
];

async function csvOf(csv: CsvStyle, language?: string) {
  const { get } = await simulateOne({ files, subject: "Papers", algorithm: "SHA-1" }, { csv });
  return get("/checksums", { headers: { "Accept-Language": language } });
}

describe("the checksums file", () => {
  test("has the subject, the labels, and a row for each file", async () => {
    const answer = await csvOf({});
    expect(answer.headers["content-type"]).toBe("text/csv; charset=utf-8");
    expect(answer.text).toBe(
      `Subject,Papers\r\nFile Name,Checksum\r\nplain,${sha1} (SHA-1)\r\n"é, "";""",${sha1} (SHA-1)\r\n`,
    );
  });

  test.each([
    ["de", "Betreff"],
    ["de-CH, en;q=0.5", "Betreff"],
    ["en;q=0.3, fr;q=0.8", "Objet"],
    ["es", "Asunto"],
    ["ja, es;q=0.1", "Asunto"],
    ["de;q=0, *", "Subject"],
    ["ja", "Subject"],
    [";;q=,,", "Subject"],
  ])("is in the language with the highest weight in %j", async (language, label) => {
    expect((await csvOf({}, language)).text).toMatch(new RegExp(`^${label},`));
  });

  test("can be written with other delimiters, quotes and line ends", async () => {
    const all = await csvOf({ delimiter: ";", quote: "all", lineEnd: "\n" }, "de");
    expect(all.text.split("\n").slice(0, 3)).toEqual([
      '"Betreff";"Papers"',
      '"Dateiname";"Prüfsumme"',
      `"plain";"${sha1} (SHA-1)"`,
    ]);
    const none = await csvOf({ delimiter: "\t", quote: "none", lineEnd: "\r" });
    expect(none.text.split("\r").at(-2)).toBe(`é, ";"\t${sha1} (SHA-1)`);
  });

  test.each(["utf-8", "utf-16le", "utf-16be", "windows-1252"] as const)(
    "can be written in %s",
    async (charset) => {
      const answer = await csvOf({ charset }, "fr");
      expect(answer.headers["content-type"]).toBe(`text/csv; charset=${charset}`);
      expect(new TextDecoder(charset).decode(answer.bytes)).toContain(
        "Nom du fichier,Somme de contrôle\r\nplain,",
      );
    },
  );

  test("can start with a byte-order mark, and hide its charset", async () => {
    const answer = await csvOf({ charset: "utf-16be", byteOrderMark: true, announceCharset: false });
    expect(answer.headers["content-type"]).toBe("text/csv");
    expect([...answer.bytes.subarray(0, 4)]).toEqual([0xfe, 0xff, 0, "S".charCodeAt(0)]);
  });

  test("can have an empty subject, or none", async () => {
    expect((await csvOf({ subject: "empty" })).text).toMatch(/^Subject,\r\nFile Name,/);
    expect((await csvOf({ subject: "missing" })).text).toMatch(/^File Name,/);
  });
});
