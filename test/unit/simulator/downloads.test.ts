/** Endpoints of one transfer: information, files, archives, checksums. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { contentOf } from "../../../simulator/content.ts";
import type { FilePlan } from "../../../simulator/scenario.ts";
import { ask, errorOf, jsonOf, NO_HEADERS, pathOf, plan, poll, simulate, simulateOne } from "./client.ts";
import { readZip } from "./zip-reader.ts";

const password = "right";

describe("the transfer information", () => {
  test("has the total size and the algorithm, even if they are wrong", async () => {
    const files: FilePlan[] = [
      { name: "a", text: "12345" },
      { name: "b", text: "1", announcedBytes: 100 },
    ];
    const { get } = await simulateOne({ files, algorithm: "SHA-1" });
    expect(jsonOf(await get()).data).toEqual({ totalSize: 105, checksumAlgorithm: "SHA-1" });
  });

  test("needs the password and a known transfer-id", async () => {
    const { simulator, path } = await simulateOne();
    expect(errorOf(await ask(simulator, path))).toBe("400/1002");
    expect(errorOf(await ask(simulator, "/api/transfers/unknown", { password }))).toBe("404/2003");
  });

  test.each([
    [{ processingSeconds: 60 }, "404/2003"],
    [{ failed: true }, "404/2003"],
    [{ expiresInSeconds: -1 }, "410/2006"],
    [{ revokedAfterSeconds: 0 }, "410/2006"],
  ])("is refused while a transfer is not active: %j", async (inactive, error) => {
    expect(errorOf(await (await simulateOne(inactive)).get())).toBe(error);
  });
});

describe("the file list", () => {
  test("has names, sizes, true checksums and self-contained links", async () => {
    const { simulator, transfer, get } = await simulateOne({ password: "a+b %ü" });
    const { data } = jsonOf(await get("/files"));
    expect(data).toEqual([
      {
        id: transfer.files[0]?.id,
        fileName: "hello.txt",
        size: 12,
        checksum: createHash("sha256").update("Hello, world").digest("hex"),
        href: expect.stringMatching(/^\/api\/transfers\/\w+\/files\/\w+\?client-id=/),
      },
    ]);
    expect((await ask(simulator, data[0].href, { headers: NO_HEADERS })).text).toBe("Hello, world");
  });

  test("can have wrong, missing or no checksums", async () => {
    const files: FilePlan[] = [
      { name: "wrong", text: "x", listChecksum: "wrong" },
      { name: "missing", text: "x", listChecksum: "missing" },
      { name: "right", text: "x" },
    ];
    const { get } = await simulateOne({ files, algorithm: "MD5" });
    const { data } = jsonOf(await get("/files"));
    expect(data[0].checksum).toMatch(/^[0-9a-f]{32}$/);
    expect(data[0].checksum).not.toBe(data[2].checksum);
    expect(data[1]).not.toHaveProperty("checksum");
    const none = await simulateOne({ algorithm: "none" });
    expect(jsonOf(await none.get("/files")).data[0].checksum).toBe("");
    expect(jsonOf(await none.get()).data.checksumAlgorithm).toBe("");
  });
});

describe("a file", () => {
  test("has its exact bytes, length, entity tag and name", async () => {
    const { file, get } = await simulateOne({ files: [{ name: "Größe 'x'.bin", base64: "AAH/" }] });
    const { bytes, headers } = await get(file);
    expect(bytes).toEqual(Buffer.from([0, 1, 255]));
    expect(headers).toMatchObject({
      "content-type": "application/octet-stream",
      "content-length": "3",
      "accept-ranges": "bytes",
      etag: expect.stringMatching(/^"\w+"$/),
      "content-disposition": `attachment; filename="Gr__e 'x'.bin"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%27x%27.bin`,
    });
    expect((await get(file)).headers.etag).toBe(headers.etag);
  });

  test("with an unknown id is not found", async () => {
    expect(errorOf(await (await simulateOne()).get("/files/unknown"))).toBe("404/2003");
  });

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

  test("is resumed only if it is unchanged", async () => {
    const { file, get } = await simulateOne();
    const { etag = "" } = (await get(file)).headers;
    const from = async (condition: string) =>
      (await get(file, { headers: { Range: "bytes=7-", "If-Range": condition } })).status;
    expect(await from(etag)).toBe(206);
    for (const other of ['"other"', "Sat, 01 Jan 2022 00:00:00 GMT"]) expect(await from(other)).toBe(200);
  });

  test("of any size is generated equally from every position, with a true checksum", async () => {
    const generate = { bytes: 3_000_001, seed: 42 };
    const { file, get } = await simulateOne({ files: [{ name: "big", generate }] });
    const { bytes } = await get(file);
    expect(bytes.length).toBe(generate.bytes);
    for (const start of [1, 16, 999_999, 2_999_999]) {
      const part = await get(file, { headers: { Range: `bytes=${start}-${start + 99}` } });
      expect(part.bytes.equals(bytes.subarray(start, start + 100))).toBe(true);
    }
    const { data } = jsonOf(await get("/files"));
    expect(data[0].checksum).toBe(createHash("sha256").update(bytes).digest("hex"));
    const planned = Buffer.concat([...contentOf({ name: "big", generate }, 0).read(0, generate.bytes)]);
    expect(planned.equals(bytes)).toBe(true);
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
    const downloads = [{ downloadDate: expect.stringMatching(/\+00:00$/), retrievalMethod: "DOWNLOAD" }];
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
    const entries = readZip(bytes);
    expect(Object.keys(entries)).toEqual(["ä/b.txt", "c.bin", "empty"]);
    expect(entries["ä/b.txt"]?.toString()).toBe("text ".repeat(100));
    const single = await get(`/files/${transfer.files[1]?.id}`);
    expect(entries["c.bin"]?.equals(single.bytes)).toBe(true);
    const again = await get("/zip");
    expect(again.bytes.equals(bytes)).toBe(true);
    expect(again.headers.etag).toBe(headers.etag);
  });

  test("has the selected files, or all others, in both forms of the list", async () => {
    const { transfer, get } = await simulateOne({ files });
    const [a = "", , c = ""] = transfer.files.map(({ id }) => id);
    const isIncluded = "is-customized-files-ids-include";
    const select = (ids: string | string[], more = {}) =>
      get("/zip", { query: { "customized-files-ids": ids, ...more } });
    const names = async (...selected: Parameters<typeof select>) =>
      Object.keys(readZip((await select(...selected)).bytes));
    expect(await names([a, c])).toEqual(["ä/b.txt", "empty"]);
    expect(await names(`${a},${c}`)).toEqual(["ä/b.txt", "empty"]);
    expect(await names(a, { [isIncluded]: "true" })).toEqual(["ä/b.txt"]);
    expect(await names(a, { [isIncluded]: "false" })).toEqual(["c.bin", "empty"]);
    expect(errorOf(await select("unknown"))).toBe("404/2003");
    expect(errorOf(await select(a, { "include-checksum-file": "maybe" }))).toBe("400/1004");
  });

  test("has the checksums on request, under a free name", async () => {
    const { get } = await simulateOne({ files: [{ name: "checksums.csv", text: "mine" }] });
    const entries = readZip((await get("/zip", { query: { "include-checksum-file": "true" } })).bytes);
    expect(entries["checksums.csv"]?.toString()).toBe("mine");
    expect(entries["_checksums.csv"]?.toString()).toBe((await get("/checksums")).text);
  });

  test("can be resumed although its length is not known in advance", async () => {
    const { get } = await simulateOne({ files });
    const { bytes, headers } = await get("/zip");
    const from = (start: number) =>
      get("/zip", { headers: { Range: `bytes=${start}-`, "If-Range": headers.etag } });
    const rest = await from(1000);
    expect(rest.headers["content-range"]).toBe(`bytes 1000-${bytes.length - 1}/${bytes.length}`);
    expect(rest.bytes.equals(bytes.subarray(1000))).toBe(true);
    expect((await from(bytes.length)).status).toBe(416);
  });

  test("has valid names in place of invalid ones", async () => {
    const names = ["../up", "/etc/passwd", "a\\..\\b", "C:\\x", "folder/", "", "..", "x".repeat(100_000)];
    const { get } = await simulateOne({ files: names.map((name) => ({ name, text: name })) });
    const zipped = Object.keys(readZip((await get("/zip")).bytes));
    expect(zipped.slice(0, -1)).toEqual(["_/up", "_/etc/passwd", "a_.._b", "C__x", "folder/_", "_"]);
    expect(zipped.at(-1)).toHaveLength(15_000);
    const list = jsonOf(await get("/files")).data;
    expect(list.map(({ fileName }: { fileName: string }) => fileName)).toEqual(names);
  });
});
