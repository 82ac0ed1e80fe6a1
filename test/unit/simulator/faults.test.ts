/** Faults: which requests they strike, how often, and what a client sees. */
import { gunzipSync } from "node:zlib";
import { expect, test, vi } from "vitest";
import type { Misbehaviour } from "../../../simulator/scenario.ts";
import { ask, jsonOf, pathOf, plan, poll, simulate, simulateOne } from "./client.ts";

const password = "right";
const TEXT = "Hello, world";
const UNAVAILABLE = { kind: "error", status: 503 } as const;

/** The answer to the download of a small file under a fault. */
async function fileUnder(does: Misbehaviour, headers: Record<string, string> = {}) {
  const { simulator, file, get } = await simulateOne();
  simulator.addFault({ on: "file", does });
  return get(file, { headers });
}

test("a fault strikes only the requests of one transfer or file", async () => {
  const files = ["a", "b"].map((name) => ({ name, text: name }));
  const { simulator, transfer, get } = await simulateOne({ trackingId: "t", files });
  const spared = simulator.addTransfer(plan());
  const [one, other] = transfer.files.map(({ id }) => `/files/${id}`);
  const always = { times: "always", does: UNAVAILABLE } as const;
  simulator.addFault({ ...always, transfer: "t", file: "b" });
  simulator.addFault({ ...always, transfer: spared.recipients[0]?.transferId ?? "", on: "zip" });
  const answers = [
    ...[one, other, ""].map((path) => get(path)),
    ...["/zip", ""].map((path) => ask(simulator, pathOf(spared) + path, { password })),
  ];
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(statuses).toEqual([200, 503, 200, 503, 200]);
});

test("a fault lets the request take effect, unless it is in front of the service", async () => {
  const { simulator, get } = await simulateOne({ trackingId: "t" });
  simulator.addFault({ does: UNAVAILABLE });
  await get("", { password: "before" });
  simulator.addFault({ does: { kind: "reset" } });
  await expect(get("", { password: "lost" })).rejects.toThrow();
  expect(simulator.refusedPasswords("t")).toEqual(["lost"]);
});

/** What is done to the answer for a file, and what the client gets. */
const FILES: readonly [text: string, does: Misbehaviour, broken?: string][] = [
  ["Hello", { kind: "truncate", afterBytes: 5 }],
  ["", { kind: "truncate", afterBytes: 0, announce: true }, "ECONNRESET"],
  [`${TEXT}???`, { kind: "lengthen", bytes: 3 }],
  ["Iello, world", { kind: "corrupt" }],
  ["Hello, worle", { kind: "corrupt", at: 11 }],
  [TEXT, { kind: "corrupt", at: 99 }],
  [TEXT, { kind: "drip", bytes: 3, pauseMs: 1 }],
];

test.each(FILES)("the answer for a file is %j under %j", async (text, does, broken) => {
  expect(await fileUnder(does)).toMatchObject({ status: 200, text, broken });
});

test.each<[string, unknown, unknown]>([
  ["data.totalSize", "many", { data: { totalSize: "many", checksumAlgorithm: "SHA-256" }, meta: {} }],
  ["data.totalSize", undefined, { data: { checksumAlgorithm: "SHA-256" }, meta: {} }],
  ["data.new", null, { data: { totalSize: 12, checksumAlgorithm: "SHA-256", new: null }, meta: {} }],
  ["meta", undefined, { data: { totalSize: 12, checksumAlgorithm: "SHA-256" } }],
  ["no.such.place", 1, { data: { totalSize: 12, checksumAlgorithm: "SHA-256" }, meta: {} }],
  ["", [], []],
])("the answer for a file alter: %j becomes %j", async (path, value, expected) => {
  const { simulator, get } = await simulateOne();
  simulator.addFault({ does: { kind: "alter", path, ...(value === undefined ? {} : { value }) } });
  expect(jsonOf(await get())).toEqual(expected);
});

test("the answer for a file alter: entries of lists can be changed and removed", async () => {
  const simulator = await simulate({ transfers: [plan({ trackingId: "a" }), plan({ trackingId: "b" })] });
  simulator.addFault({ on: "received", does: { kind: "alter", path: "data.0.trackingId", value: 5 } });
  simulator.addFault({ on: "received", does: { kind: "alter", path: "data.1" } });
  const { data } = jsonOf(await poll(simulator, "orders@example.com", { fields: "trackingId" }));
  expect(data).toEqual([{ trackingId: 5 }]);
});

test("the answer for a file encoding: compressed without being asked", async () => {
  const zipped = await fileUnder({ kind: "encoding", encoding: "gzip" });
  expect(zipped.headers["content-encoding"]).toBe("gzip");
  expect(gunzipSync(zipped.bytes).toString()).toBe(TEXT);
  const { simulator, get } = await simulateOne();
  simulator.addFault({ does: { kind: "encoding", encoding: "gzip" } });
  expect(jsonOf(await get()).data.totalSize).toBe(12);
});

test.each([
  ["honour", "bytes=7-", 206, "bytes 7-11/12", "world"],
  ["ignore", "bytes=7-", 200, undefined, TEXT],
  ["refuse", "bytes=7-", 416, "bytes */12", ""],
  ["elsewhere", "bytes=7-", 206, "bytes 0-4/12", "Hello"],
  ["lie", "bytes=7-", 206, "bytes 7-11/12", "Hello"],
  ["lie", "bytes=0-4", 206, "bytes 0-4/12", "ello,"],
] as const)("the answer for a file range: %s, for %s", async (mode, range, status, contentRange, text) => {
  const answer = await fileUnder({ kind: "range", mode }, { Range: range });
  expect(answer).toMatchObject({ status, text });
  expect(answer.headers["content-range"]).toBe(contentRange);
});

test("a stalled answer is silent until the client gives up", async () => {
  const over = Promise.withResolvers<string>();
  const simulator = await simulate({ faults: [{ does: { kind: "stall" } }] }, { log: over.resolve });
  const stop = new AbortController();
  const asking = ask(simulator, "/api/password", { signal: stop.signal });
  await vi.waitFor(() => expect(simulator.requests()).toMatchObject([{ status: 0, bytes: 0 }]));
  stop.abort();
  await expect(asking).rejects.toThrow("aborted");
  expect(await over.promise).toMatch(/^GET \/api\/password 0 0 bytes \d+ ms fault-1:stall$/);
});

test("a stalled answer does not prevent the simulator from closing", async () => {
  const { simulator, file, get } = await simulateOne();
  simulator.addFault({ does: { kind: "stall", afterBytes: 5 } });
  const first = Promise.withResolvers<void>();
  const asking = get(file, { onChunk: () => first.resolve() });
  await first.promise;
  await simulator.close();
  expect(await asking).toMatchObject({ text: "Hello", broken: "ECONNRESET" });
  await simulator.close();
});
