import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readEntries } from "../../../src/service/entries.ts";
import type { Answer } from "../../../src/service/receiving.ts";

test("a long list is parsed while it arrives however it is split into chunks, and whatever its entries and its envelope contain", async () => {
  const word = fc.string({
    unit: fc.constantFrom("a", '"', "\\", ",", "[", "]", "{", "}", ":", "é", "😀", " "),
  });
  const value = fc.jsonValue({
    maxDepth: 3,
    stringUnit: fc.constantFrom("a", '"', "\\", ",", "]", "}", "é"),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(word, value), { maxLength: 5 }),
      fc.dictionary(word, value, { maxKeys: 3 }),
      fc.dictionary(word, value, { maxKeys: 3 }),
      fc.constantFrom(0, 2),
      fc.integer({ min: 1, max: 20 }),
      fc.boolean(),
      async (data, before, after, indent, pieceBytes, packed) => {
        const text = JSON.stringify({ ...before, data, ...after }, null, indent);
        const entries = await entriesOf(text, pieceBytes, packed);
        expect(entries).toEqual(JSON.parse(text).data);
      },
    ),
    { numRuns: 500 },
  );
});

test.each([
  ["nothing", ""],
  ["an HTML page", "<html>[1]</html>"],
  ["null", "null"],
  ["no envelope", "[1]"],
  ["no data", '{"meta":[1]}'],
  ["data of another kind", '{"data":{"data":[1]}}'],
  ["a list in a list", '{"meta":{"data":[1]}}'],
  ["half a list", '{"data":[1,2'],
  ["half an envelope", '{"data":[1,2]'],
  ["entries that are no JSON", '{"data":[1,x]}'],
  ["a comma too many", '{"data":[1,]}'],
])("a long list is parsed while it arrives a list is a fault where there is %s", async (_case, text) => {
  await expect(entriesOf(text, 5)).rejects.toMatchObject({ code: "BAD_ANSWER" });
});

test.each([
  ["one endless entry", `{"data":["${"x".repeat(70_000)}"]}`],
  ["too many entries", `{"data":[${"1,".repeat(200_000)}1]}`],
  ["too many bytes", `{"data":[${`"${"x".repeat(50_000)}",`.repeat(1_010)}1]}`],
])(
  "I8 bounded: a long list is parsed while it arrives a list is a fault where it has %s",
  async (_case, text) => {
    await expect(entriesOf(text, 65_536)).rejects.toMatchObject({ code: "ANSWER_TOO_LARGE" });
  },
);

test("a long list is parsed while it arrives parts outside the list may have any size", async () => {
  const text = JSON.stringify({ meta: "x".repeat(200_000), data: [1], more: ["x".repeat(200_000)] });
  expect(await entriesOf(text, 1_000)).toEqual([1]);
});

async function entriesOf(text: string, pieceBytes: number, packed = false): Promise<unknown[]> {
  const bytes = packed ? gzipSync(text) : Buffer.from(text);
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  }
  const body = Object.assign(pieces(), { cancel: () => {} });
  const headers = packed ? { "content-encoding": "gzip" } : {};
  const entries: unknown[] = [];
  await readEntries({ statusCode: 200, headers, body } as unknown as Answer, "the list", (entry) =>
    entries.push(entry),
  );
  return entries;
}
