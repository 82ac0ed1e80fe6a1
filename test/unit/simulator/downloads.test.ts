import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { fromBufferPromise } from "yauzl";
import type { FilePlan } from "../../../simulator/scenario.ts";
import { ask, errorOf, jsonOf, pathOf, plan, poll, simulate, simulateOne } from "./client.ts";

const password = "right";

test("the transfer information has the total size and the algorithm, even if they are wrong", async () => {
  const files: FilePlan[] = [
    { name: "a", text: "12345" },
    { name: "b", text: "1", announcedBytes: 100 },
  ];
  const { get } = await simulateOne({ files, algorithm: "SHA-1" });
  expect(jsonOf(await get()).data).toEqual({ totalSize: 105, checksumAlgorithm: "SHA-1" });
});

test.each([
  [{ processingSeconds: 60 }, "404/2003"],
  [{ failed: true }, "404/2003"],
  [{ expiresInSeconds: -1 }, "404/2003"],
  [{ revokedAfterSeconds: 0 }, "404/2003"],
])("the transfer information is refused while a transfer is not active: %j", async (inactive, error) => {
  expect(errorOf(await (await simulateOne(inactive)).get())).toBe(error);
});

describe("a file", () => {
  test.each([
    ["bytes=0-0", 206, "bytes 0-0/12", "H"],
    ["bytes=7-", 206, "bytes 7-11/12", "world"],
    ["bytes=7-100", 206, "bytes 7-11/12", "world"],
    ["bytes=-5", 206, "bytes 7-11/12", "world"],
    ["bytes=-100", 206, "bytes 0-11/12", "Hello, world"],
    ["bytes=12-", 416, "bytes */12", ""],
    ["bytes=-0", 416, "bytes */12", ""],
    ["bytes=3-1", 200, undefined, "Hello, world"],
    ["bytes=0-1,3-4", 200, undefined, "Hello, world"],
    ["lines=0-1", 200, undefined, "Hello, world"],
  ])("answers %s with %i", async (range, status, contentRange, text) => {
    const { file, get } = await simulateOne();
    const answer = await get(file, { headers: { Range: range } });
    expect(answer).toMatchObject({ status, text });
    expect(answer.headers["content-range"]).toBe(contentRange);
    expect(answer.headers["content-length"]).toBe(String(text.length));
  });

  test("far larger than memory is read at any position at once", async () => {
    const bytes = 5_000_000_000_000;
    const { file, get } = await simulateOne({ files: [{ name: "huge", generate: { bytes } }] });
    const answer = await get(file, { headers: { Range: `bytes=${bytes - 10}-` } });
    expect(answer.headers["content-range"]).toBe(`bytes ${bytes - 10}-${bytes - 1}/${bytes}`);
    expect(answer.bytes).toHaveLength(10);
  });

  test.each(["files/0", "zip", "eml"])(
    "that a client breaks off (%s) is not sent any further",
    async (what) => {
      const over = Promise.withResolvers<string>();
      const simulator = await simulate({}, { log: over.resolve });
      const files = [{ name: "huge", generate: { bytes: 1e12 } }];
      const transfer = simulator.addTransfer(plan({ files, message: "Hi" }));
      const path = `${pathOf(transfer)}/${what.replace("0", transfer.files[0]?.id ?? "")}`;
      const stop = new AbortController();
      const asking = ask(simulator, path, { password, signal: stop.signal, onChunk: () => stop.abort() });
      await expect(asking).rejects.toThrow("aborted");
      expect(await over.promise).toContain(`GET ${path} 200`);
      expect((await ask(simulator, "/api/password")).status).toBe(200);
    },
  );

  test("is recorded as downloaded by that recipient", async () => {
    const { simulator, transfer, file, get } = await simulateOne({ cc: ["b@example.com"] });
    await get(file);
    const [entry] = jsonOf(await poll(simulator, "orders@example.com")).data;
    const [own, other] = entry.status.recipients;
    const downloads = [{ downloadDate: expect.stringMatching(/\+00:00$/), retrievalMethod: "DOWNLOADED" }];
    expect(own.fileDownloads).toEqual([{ id: transfer.files[0]?.id, downloads }]);
    expect(other.fileDownloads).toEqual([]);
  });
});

describe("the ZIP", () => {
  const files: FilePlan[] = [
    { name: "ä/b.txt", text: "text ".repeat(100) },
    { name: "c.bin", generate: { bytes: 100_000 } },
    { name: "empty", text: "" },
  ];

  test("has all files, the name of the transfer, and the same bytes each time", async () => {
    const { transfer, get } = await simulateOne({ files, trackingId: "t-1" });
    const { bytes, headers } = await get("/zip");
    expect(headers["content-length"]).toBeUndefined();
    expect(headers["content-disposition"]).toContain('filename="t-1.zip"');
    const entries = await readZip(bytes);
    expect(Object.keys(entries)).toEqual(["ä/b.txt", "c.bin", "empty"]);
    expect(entries["ä/b.txt"]?.toString()).toBe("text ".repeat(100));
    const single = await get(`/files/${transfer.files[1]?.id}`);
    expect(entries["c.bin"]?.equals(single.bytes)).toBe(true);
    const again = await get("/zip");
    expect(again.bytes.equals(bytes)).toBe(true);
    expect(again.headers.etag).toBe(headers.etag);
  });

  test("has the checksums on request, under a free name", async () => {
    const { get } = await simulateOne({ files: [{ name: "checksums.csv", text: "mine" }] });
    const entries = await readZip((await get("/zip", { query: { "include-checksum-file": "true" } })).bytes);
    expect(entries["checksums.csv"]?.toString()).toBe("mine");
    expect(entries["_checksums.csv"]?.toString()).toBe((await get("/checksums")).text);
  });

  test("has valid names in place of invalid ones", async () => {
    const names = ["../up", "/etc/passwd", "a\\..\\b", "C:\\x", "folder/", "", "..", "x".repeat(100_000)];
    const { get } = await simulateOne({ files: names.map((name) => ({ name, text: name })) });
    const zipped = Object.keys(await readZip((await get("/zip")).bytes));
    expect(zipped.slice(0, -1)).toEqual(["_/up", "_/etc/passwd", "a_.._b", "C__x", "folder/_", "_"]);
    expect(zipped.at(-1)).toHaveLength(15_000);
    const list = jsonOf(await get("/files")).data;
    expect(list.map(({ fileName }: { fileName: string }) => fileName)).toEqual(names);
  });
});

/** The entries by name. */
async function readZip(archive: Buffer): Promise<Record<string, Buffer>> {
  const zip = await fromBufferPromise(archive);
  const entries: Record<string, Buffer> = {};
  for await (const entry of zip.eachEntry())
    entries[entry.fileName] = await buffer(await zip.openReadStreamPromise(entry));
  return entries;
}

test("a removed file is in no ZIP, and asked for by itself it is no such entity", async () => {
  const files = [
    { name: "a.txt", text: "a" },
    { name: "b.txt", text: "b", removed: "It has a virus." },
  ];
  const { get } = await simulateOne({ files });
  const [, removed] = jsonOf(await get("/files")).data;
  expect(removed.fileName).toBe("b.txt");
  expect(errorOf(await get(`/files/${removed.id}`))).toBe("404/2003");
  const zip = await get("/zip");
  expect([zip.bytes.includes("a.txt"), zip.bytes.includes("b.txt")]).toEqual([true, false]);
});
