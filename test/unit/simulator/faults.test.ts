/** Faults: which requests they strike, how often, and what a client sees. */
import { gunzipSync } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import type { Misbehaviour } from "../../../simulator/scenario.ts";
import { ask, errorOf, jsonOf, pathOf, plan, poll, simulate, simulateOne } from "./client.ts";

const password = "right";
const TEXT = "Hello, world";

/** The answer to the download of a small file under a fault. */
async function fileUnder(does: Misbehaviour, headers: Record<string, string> = {}) {
  const { simulator, file } = await simulateOne();
  simulator.addFault({ on: "file", does });
  return ask(simulator, file, { password, headers });
}

describe("a fault", () => {
  test("strikes once, after the skipped requests, and is counted", async () => {
    const simulator = await simulate({
      faults: [{ on: "password-rules", skip: 1, times: 2, does: { kind: "error", status: 503 } }],
    });
    const statuses: number[] = [];
    for (let times = 0; times < 5; times += 1) {
      statuses.push((await ask(simulator, "/api/password/requirements")).status);
      await ask(simulator, "/api/password");
    }
    expect(statuses).toEqual([200, 503, 503, 200, 200]);
    expect(simulator.faults()).toEqual([
      { id: "fault-1", plan: expect.objectContaining({ skip: 1 }), matched: 5, struck: 2 },
    ]);
    expect(simulator.requests().flatMap(({ faults }) => faults)).toEqual(["fault-1", "fault-1"]);
  });

  test("strikes only the requests of one transfer or file", async () => {
    const files = [
      { name: "a.txt", text: "a" },
      { name: "b.txt", text: "b" },
    ];
    const simulator = await simulate({ transfers: [plan({ trackingId: "t", files }), plan()] });
    const [struck, spared] = simulator.transfers();
    if (struck === undefined || spared === undefined) throw new Error("there are two transfers");
    simulator.addFault({
      transfer: "t",
      file: "b.txt",
      times: "always",
      does: { kind: "error", status: 500 },
    });
    simulator.addFault({
      transfer: spared.recipients[0]?.transferId ?? "",
      on: "zip",
      times: "always",
      does: { kind: "error", status: 501 },
    });
    const statusOf = async (path: string) => (await ask(simulator, path, { password })).status;
    const statuses = await Promise.all([
      ...struck.files.map(({ id }) => statusOf(`${pathOf(struck)}/files/${id}`)),
      statusOf(pathOf(struck)),
      statusOf(`${pathOf(spared)}/zip`),
      statusOf(pathOf(spared)),
    ]);
    expect(statuses).toEqual([200, 500, 200, 501, 200]);
  });

  test("can be removed", async () => {
    const simulator = await simulate();
    const does = { kind: "error", status: 500 } as const;
    const status = async () => (await ask(simulator, "/api/password")).status;
    const id = simulator.addFault({ times: "always", does });
    simulator.addFault({ times: "always", does: { ...does, status: 501 } });
    expect(await status()).toBe(501);
    expect(simulator.removeFault("fault-9")).toBe(false);
    expect(simulator.removeFault(id)).toBe(true);
    expect(await status()).toBe(501);
    simulator.clearFaults();
    expect(await status()).toBe(200);
  });

  test("applies to the result of earlier faults", async () => {
    const { simulator, path } = await simulateOne();
    simulator.addFault({ does: { kind: "error", status: 503, retryAfter: "7" } });
    simulator.addFault({ does: { kind: "body", text: "half a {" } });
    simulator.addFault({ does: { kind: "truncate", afterBytes: 4 } });
    expect(await ask(simulator, path, { password })).toMatchObject({ status: 503, text: "half" });
  });

  test("lets the request take effect, unless it is in front of the service", async () => {
    const { simulator, path } = await simulateOne({ trackingId: "t" });
    simulator.addFault({ does: { kind: "error", status: 502 } });
    await ask(simulator, path, { password: "before" });
    simulator.addFault({ does: { kind: "reset" } });
    await expect(ask(simulator, path, { password: "lost" })).rejects.toThrow();
    expect(simulator.refusedPasswords("t")).toEqual(["lost"]);
  });
});

describe("the content of the answer", () => {
  test("error: the service's error body, with the default error code of the status or another", async () => {
    const usual = await fileUnder({ kind: "error", status: 429, retryAfter: "120" });
    expect(errorOf(usual)).toBe("429/2007");
    expect(usual.headers["retry-after"]).toBe("120");
    const other = await fileUnder({
      kind: "error",
      status: 403,
      errorCode: 3001,
      errorMessage: "no licence",
    });
    expect(jsonOf(other)).toEqual({ errorCode: 3001, errorMessage: "no licence" });
  });

  test("html: an HTML page", async () => {
    const answer = await fileUnder({ kind: "html" });
    expect(answer).toMatchObject({ status: 200, text: expect.stringContaining("<!doctype html>") });
    expect(answer.headers["content-type"]).toContain("text/html");
    expect((await fileUnder({ kind: "html", status: 502 })).status).toBe(502);
  });

  test("body: any text instead of the answer", async () => {
    const answer = await fileUnder({ kind: "body", text: '{"data":', contentType: "text/plain" });
    expect(answer).toMatchObject({ status: 200, text: '{"data":' });
    expect(answer.headers["content-type"]).toBe("text/plain");
    expect((await fileUnder({ kind: "body", text: "" })).headers["content-length"]).toBe("0");
  });

  test("redirect: another address", async () => {
    const answer = await fileUnder({ kind: "redirect", to: "https://elsewhere.example/x" });
    expect([answer.status, answer.headers.location]).toEqual([302, "https://elsewhere.example/x"]);
    expect((await fileUnder({ kind: "redirect", to: "/x", status: 308 })).status).toBe(308);
  });

  test.each<[string, unknown, unknown]>([
    ["data.totalSize", "many", { data: { totalSize: "many", checksumAlgorithm: "SHA-256" }, meta: {} }],
    ["data.totalSize", undefined, { data: { checksumAlgorithm: "SHA-256" }, meta: {} }],
    ["data.new", null, { data: { totalSize: 12, checksumAlgorithm: "SHA-256", new: null }, meta: {} }],
    ["meta", undefined, { data: { totalSize: 12, checksumAlgorithm: "SHA-256" } }],
    ["no.such.place", 1, { data: { totalSize: 12, checksumAlgorithm: "SHA-256" }, meta: {} }],
    ["", [], []],
  ])("alter: %j becomes %j", async (path, value, expected) => {
    const one = await simulateOne();
    one.simulator.addFault({ does: { kind: "alter", path, ...(value === undefined ? {} : { value }) } });
    expect(jsonOf(await ask(one.simulator, one.path, { password }))).toEqual(expected);
  });

  test("alter: entries of lists can be changed and removed", async () => {
    const simulator = await simulate({ transfers: [plan({ trackingId: "a" }), plan({ trackingId: "b" })] });
    simulator.addFault({ on: "received", does: { kind: "alter", path: "data.0.trackingId", value: 5 } });
    simulator.addFault({ on: "received", does: { kind: "alter", path: "data.1" } });
    const { data } = jsonOf(await poll(simulator, "orders@example.com", { fields: "trackingId" }));
    expect(data).toEqual([{ trackingId: 5 }]);
  });
});

describe("the body", () => {
  test("truncate: a regular end, or fewer bytes than announced", async () => {
    const regular = await fileUnder({ kind: "truncate", afterBytes: 5 });
    expect(regular).toMatchObject({ text: "Hello", broken: undefined });
    expect(regular.headers["content-length"]).toBe("5");
    const broken = await fileUnder({ kind: "truncate", afterBytes: 5, announce: true });
    expect(broken).toMatchObject({ text: "Hello", broken: "ECONNRESET" });
    expect(broken.headers["content-length"]).toBe("12");
    const empty = await fileUnder({ kind: "truncate", afterBytes: 0, announce: true });
    expect(empty).toMatchObject({ status: 200, text: "", broken: "ECONNRESET" });
  });

  test("truncate: also without an announced length", async () => {
    const { simulator, path } = await simulateOne();
    simulator.addFault({ on: "zip", does: { kind: "truncate", afterBytes: 50 } });
    simulator.addFault({ on: "zip", skip: 1, does: { kind: "truncate", afterBytes: 50, announce: true } });
    const zip = () => ask(simulator, `${path}/zip`, { password });
    expect((await zip()).broken).toBeUndefined();
    expect((await zip()).broken).toBe("ECONNRESET");
  });

  test("lengthen: wrong bytes, included in the length", async () => {
    const answer = await fileUnder({ kind: "lengthen", bytes: 3 });
    expect(answer.text).toBe(`${TEXT}???`);
    expect(answer.headers["content-length"]).toBe("15");
  });

  test("corrupt: one bit", async () => {
    expect((await fileUnder({ kind: "corrupt" })).text).toBe("Iello, world");
    expect((await fileUnder({ kind: "corrupt", at: 11 })).text).toBe("Hello, worle");
    expect((await fileUnder({ kind: "corrupt", at: 99 })).text).toBe(TEXT);
  });

  test("omit: missing headers", async () => {
    const headers = ["etag", "Content-Length", "date", "Accept-Ranges"];
    const answer = await fileUnder({ kind: "omit", headers });
    expect(answer.text).toBe(TEXT);
    for (const name of headers) expect(answer.headers).not.toHaveProperty(name.toLowerCase());
  });

  test("change-etag: another each time, so that nothing can be resumed", async () => {
    const { simulator, file } = await simulateOne();
    simulator.addFault({ times: "always", does: { kind: "change-etag" } });
    const first = await ask(simulator, file, { password });
    const headers = { Range: "bytes=5-", "If-Range": first.headers.etag };
    const second = await ask(simulator, file, { password, headers });
    expect(second.status).toBe(200);
    expect(second.headers.etag).not.toBe(first.headers.etag);
  });

  test("encoding: compressed without being asked, or falsely claimed", async () => {
    const zipped = await fileUnder({ kind: "encoding", encoding: "gzip" });
    expect(zipped.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(zipped.bytes).toString()).toBe(TEXT);
    const claimed = await fileUnder({ kind: "encoding", encoding: "br" });
    expect([claimed.headers["content-encoding"], claimed.text]).toEqual(["br", TEXT]);
    const { simulator, path } = await simulateOne();
    simulator.addFault({ does: { kind: "encoding", encoding: "gzip" } });
    expect(jsonOf(await ask(simulator, path, { password })).data.totalSize).toBe(12);
  });

  test.each([
    ["honour", 206, "bytes 7-11/12", "world"],
    ["ignore", 200, undefined, TEXT],
    ["refuse", 416, "bytes */12", ""],
    ["elsewhere", 206, "bytes 0-4/12", "Hello"],
    ["lie", 206, "bytes 7-11/12", "Hello"],
  ] as const)("range: %s", async (mode, status, contentRange, text) => {
    const answer = await fileUnder({ kind: "range", mode }, { Range: "bytes=7-" });
    expect(answer).toMatchObject({ status, text });
    expect(answer.headers["content-range"]).toBe(contentRange);
  });

  test("range: other bytes even if the start was requested", async () => {
    const answer = await fileUnder({ kind: "range", mode: "lie" }, { Range: "bytes=0-4" });
    expect(answer).toMatchObject({ status: 206, text: "ello," });
  });

  test("range: skips requests without one", async () => {
    const { simulator, file } = await simulateOne();
    simulator.addFault({ does: { kind: "range", mode: "refuse" } });
    expect((await ask(simulator, file, { password })).status).toBe(200);
    expect((await ask(simulator, file, { password, headers: { Range: "bytes=1-" } })).status).toBe(416);
  });

  test("drip: everything, but slowly", async () => {
    const startedAt = performance.now();
    expect((await fileUnder({ kind: "drip", bytes: 3, pauseMs: 20 })).text).toBe(TEXT);
    expect(performance.now() - startedAt).toBeGreaterThan(60);
  });
});

describe("faults of lists", () => {
  const transfers = Array.from({ length: 6 }, (_, index) => plan({ trackingId: `t${index + 1}` }));

  async function pagesUnder(does: Misbehaviour, pages: number): Promise<string[][]> {
    const simulator = await simulate({ transfers, faults: [{ times: "always", does }] });
    const seen: string[][] = [];
    for (let page = 1; page <= pages; page += 1) {
      const query = { page: String(page), "page-size": "3", fields: "trackingId" };
      const { data } = jsonOf(await poll(simulator, "orders@example.com", query));
      seen.push(data.map(({ trackingId }: { trackingId: string }) => trackingId));
    }
    return seen;
  }

  test("shift: newer entries push the others back between pages", async () => {
    const phantom = (number: number) => `phantom-fault-1-${number}`;
    expect(await pagesUnder({ kind: "shift", by: 1 }, 4)).toEqual([
      [phantom(1), "t6", "t5"],
      ["t5", "t4", "t3"],
      ["t3", "t2", "t1"],
      ["t1"],
    ]);
  });

  test("shift: vanished entries pull the others forward", async () => {
    expect(await pagesUnder({ kind: "shift", by: -1 }, 2)).toEqual([["t5", "t4", "t3"], ["t1"]]);
  });

  test("repeat: every page starts with the end of the one before", async () => {
    expect(await pagesUnder({ kind: "repeat", entries: 1 }, 4)).toEqual([
      ["t6", "t5", "t4"],
      ["t4", "t3", "t2"],
      ["t2", "t1"],
      [],
    ]);
    expect(await pagesUnder({ kind: "repeat", entries: 9 }, 2)).toEqual([
      ["t6", "t5", "t4"],
      ["t6", "t5", "t4"],
    ]);
  });

  test("endless: every page is full of new entries", async () => {
    const seen = (await pagesUnder({ kind: "endless" }, 5)).flat();
    expect(new Set(seen).size).toBe(15);
  });

  test("strike no other requests", async () => {
    const simulator = await simulate({ faults: [{ does: { kind: "endless" } }] });
    await ask(simulator, "/api/password");
    expect(simulator.faults()[0]?.matched).toBe(0);
  });
});

describe("a stalled answer", () => {
  test("continues after its time, including the head", async () => {
    const startedAt = performance.now();
    expect((await fileUnder({ kind: "stall", seconds: 0.1 })).text).toBe(TEXT);
    expect(performance.now() - startedAt).toBeGreaterThan(90);
  });

  test("pauses within the body, and then continues", async () => {
    const { simulator, file } = await simulateOne();
    simulator.addFault({ does: { kind: "stall", afterBytes: 5, seconds: 0.1 } });
    const came: { text: string; at: number }[] = [];
    const onChunk = (chunk: Buffer) => came.push({ text: chunk.toString(), at: performance.now() });
    expect((await ask(simulator, file, { password, onChunk })).text).toBe(TEXT);
    expect(came.map(({ text }) => text)).toEqual(["Hello", ", world"]);
    expect((came[1]?.at ?? 0) - (came[0]?.at ?? 0)).toBeGreaterThan(80);
  });

  test("is silent until the client gives up", async () => {
    const over = Promise.withResolvers<string>();
    const simulator = await simulate({ faults: [{ does: { kind: "stall" } }] }, { log: over.resolve });
    const stop = new AbortController();
    const asking = ask(simulator, "/api/password", { signal: stop.signal });
    await vi.waitFor(() => expect(simulator.requests()).toMatchObject([{ status: 0, bytes: 0 }]));
    stop.abort();
    await expect(asking).rejects.toThrow("aborted");
    expect(await over.promise).toMatch(/^GET \/api\/password 0 0 bytes \d+ ms fault-1:stall$/);
  });

  test("does not prevent the simulator from closing", async () => {
    const { simulator, file } = await simulateOne();
    simulator.addFault({ does: { kind: "stall", afterBytes: 5 } });
    const first = Promise.withResolvers<void>();
    const asking = ask(simulator, file, { password, onChunk: () => first.resolve() });
    await first.promise;
    await simulator.close();
    expect(await asking).toMatchObject({ text: "Hello", broken: "ECONNRESET" });
    await simulator.close();
  });
});
