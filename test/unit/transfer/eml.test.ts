import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { EmlReader } from "../../../src/transfer/eml.ts";

const REPORT = Buffer.from(Array.from({ length: 5_000 }, (_, at) => (at * 7) % 256));
const NOTE = Buffer.from("caf\u00e9 = good\r\n--x\r\nlast line");
const EMPTY = Buffer.alloc(0);

const base64 = (bytes: Buffer) => bytes.toString("base64").replace(/.{76}/g, "$&\r\n");
const quoted = (bytes: Buffer) =>
  bytes
    .toString("latin1")
    .replace(
      /[^\x21-\x3c\x3e-\x7e\r\n ]/g,
      (it) => `=${it.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
    )
    .replace(/[^\r\n=]{30}(?=[^\r\n=])/g, "$&=\r\n");

interface Part {
  readonly type?: string;
  readonly encoding?: string;
  readonly name?: string;
  readonly body: string | Buffer;
}

function partOf({ type = "application/octet-stream", encoding, name, body }: Part): Buffer {
  const head = [
    `Content-Type: ${type}`,
    ...(encoding === undefined ? [] : [`Content-Transfer-Encoding: ${encoding}`]),
    ...(name === undefined ? [] : [`Content-Disposition: attachment;\r\n filename="${name}"`]),
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), Buffer.from(body)]);
}

function multipart(boundary: string, parts: readonly (Part | Buffer)[], kind = "mixed"): Part {
  const all = parts.flatMap((part) => [
    Buffer.from(`\r\n--${boundary}\r\n`),
    Buffer.isBuffer(part) ? part : partOf(part),
  ]);
  const body = Buffer.concat([...all, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  return { type: `multipart/${kind}; boundary="${boundary}"`, body };
}

const TEXT: Part = { type: "text/plain; charset=utf-8", body: "Hello" };
const mail = (part: Part) =>
  Buffer.concat([Buffer.from("From: a@example.com\r\nSubject: x\r\n"), partOf(part)]);

/** The EML without those parts that equal files. */
function withoutFiles(eml: Buffer, files: readonly Buffer[], pieceBytes = 1_000): string {
  const reader = new EmlReader(new Set(files.map(({ length }) => length)));
  for (let at = 0; at < eml.length; at += pieceBytes) reader.push(eml.subarray(at, at + pieceBytes));
  reader.end();
  const sums = new Set(files.map((file) => createHash("sha256").update(file).digest("hex")));
  let at = 0;
  const kept: Buffer[] = [];
  const copies = reader.found.filter(({ sha256 }) => sums.has(sha256)).sort((a, b) => a.start - b.start);
  for (const { start, end } of copies) {
    kept.push(eml.subarray(at, Math.max(at, start)));
    at = Math.max(at, end);
  }
  return Buffer.concat([...kept, eml.subarray(at)]).toString("latin1");
}

const text = (part: Part) => mail(part).toString("latin1");

describe("I1 whole or nothing: parts of an EML that are files of the transfer", () => {
  const attached: readonly (readonly [string, Part, Buffer])[] = [
    ["base64", { encoding: "base64", name: "r.bin", body: base64(REPORT) }, REPORT],
    ["base64 in one line", { encoding: "BASE64", name: "r.bin", body: REPORT.toString("base64") }, REPORT],
    ["quoted-printable", { encoding: "quoted-printable", name: "n", body: quoted(NOTE) }, NOTE],
    ["8bit", { encoding: "8bit", name: "n.txt", type: "text/plain", body: NOTE }, NOTE],
    ["binary", { encoding: "binary", name: "r.bin", body: REPORT }, REPORT],
    ["no encoding", { name: "r.bin", body: REPORT }, REPORT],
    ["another name", { encoding: "base64", name: "other.bin", body: base64(REPORT) }, REPORT],
    ["no name", { encoding: "base64", body: base64(REPORT) }, REPORT],
    ["nothing", { encoding: "base64", name: "empty", body: "" }, EMPTY],
    ["a message", { type: "message/rfc822", name: "m.eml", body: mail(TEXT) }, mail(TEXT)],
    [
      "a message with parts",
      { type: "message/rfc822", name: "m.eml", body: mail(multipart("in", [TEXT])) },
      mail(multipart("in", [TEXT])),
    ],
  ];
  test.each(attached)("are found: %s", (_, part, file) => {
    for (const pieceBytes of [1, 7, 100, 100_000]) {
      const whole = mail(multipart("b", [TEXT, part, TEXT]));
      expect(withoutFiles(whole, [file, REPORT], pieceBytes)).toBe(text(multipart("b", [TEXT, TEXT])));
      expect(withoutFiles(mail(multipart("b", [TEXT, part])), [file])).toBe(text(multipart("b", [TEXT])));
    }
  });

  const copy: Part = { encoding: "base64", name: "r.bin", body: base64(REPORT) };
  test.each<readonly [string, Part, Part]>([
    [
      "nested parts",
      multipart("a", [multipart("a2", [TEXT, copy]), copy]),
      multipart("a", [multipart("a2", [TEXT])]),
    ],
    [
      "an attached message",
      multipart("a", [TEXT, { type: "message/rfc822", body: mail(multipart("i", [TEXT, copy])) }]),
      multipart("a", [TEXT, { type: "message/rfc822", body: mail(multipart("i", [TEXT])) }]),
    ],
    ["one file twice", multipart("a", [TEXT, copy, copy]), multipart("a", [TEXT])],
  ])("are found in %s", (_, part, left) => {
    expect(withoutFiles(mail(part), [REPORT])).toBe(text(left));
  });

  test.each<readonly [string, Part]>([
    ["the text of the message", multipart("b", [TEXT, { type: "text/html", body: "Hello" }])],
    [
      "other bytes of the same size",
      multipart("b", [TEXT, { name: "r", body: Buffer.alloc(REPORT.length, 1) }]),
    ],
    ["a byte more", multipart("b", [TEXT, { name: "r", body: Buffer.concat([REPORT, Buffer.from("x")]) }])],
    ["a signed message", multipart("b", [TEXT, copy], "signed")],
    ["a message without parts", copy],
    ["a separator that never comes", { type: 'multipart/mixed; boundary="b"', body: "nothing" }],
    ["a separator without a boundary", { type: "multipart/mixed", body: `--b\r\n${copy.body}` }],
  ])("stay where they are: %s", (_, part) => {
    expect(withoutFiles(mail(part), [REPORT, Buffer.from("Hello")])).toBe(text(part));
  });

  test("with line ends of one character", () => {
    const whole = Buffer.from(text(multipart("b", [TEXT, copy])).replaceAll("\r\n", "\n"), "latin1");
    expect(withoutFiles(whole, [REPORT])).toBe(text(multipart("b", [TEXT])).replaceAll("\r\n", "\n"));
  });

  test("a boundary that begins like another one", () => {
    const part = multipart("b", [multipart("b2", [TEXT, copy]), TEXT]);
    expect(withoutFiles(mail(part), [REPORT])).toBe(text(multipart("b", [multipart("b2", [TEXT]), TEXT])));
  });

  test("I8 bounded: whatever comes, little is kept in memory", () => {
    const endless = ["\n--", "=", "A", "\r\n", "--b\r\n", "--b\r\n\r\n", "x:y\r\n"];
    for (const piece of endless) {
      const reader = new EmlReader(new Set([0]));
      reader.push(partOf({ ...multipart("b", []), body: "" }));
      const chunk = Buffer.from(piece.repeat(Math.ceil(65_536 / piece.length)));
      const before = process.memoryUsage();
      for (let count = 0; count < 40; count++) reader.push(chunk);
      reader.end();
      const { heapUsed, external } = process.memoryUsage();
      expect(heapUsed + external - before.heapUsed - before.external, piece).toBeLessThan(60e6);
    }
  });
});
