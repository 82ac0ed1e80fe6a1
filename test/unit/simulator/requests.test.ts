/** The standard parameters of requests, and the errors without them. */
import { createConnection } from "node:net";
import { expect, test } from "vitest";
import { ask, errorOf, jsonOf, NO_HEADERS, plan, simulate, simulateOne } from "./client.ts";

test.each([
  ["X-CS-MajorApiVersion", "400/1002", "one", "400/1004"],
  ["X-CS-MinimumMinorApiVersion", "400/1002", "-3", "400/1004"],
  ["X-CS-ProductKey", "400/1002", "api.soap", "400/1004"],
  ["X-CS-ClientId", "400/1002", "too-short", "400/1004"],
])("a request is refused if %s is missing (%s) or malformed", async (header, missing, value, malformed) => {
  const simulator = await simulate();
  const askWith = (given?: string) => ask(simulator, "/api/password", { headers: { [header]: given } });
  expect([errorOf(await askWith()), errorOf(await askWith(value))]).toEqual([missing, malformed]);
});

test("a request may carry header parameters in its query", async () => {
  const { simulator, transfer, path } = await simulateOne({ password: "a+b %/ü" });
  const answer = await ask(simulator, path, {
    headers: NO_HEADERS,
    query: {
      "major-api-version": "1",
      "minimum-minor-api-version": "9",
      "product-key": "api.rest",
      "client-id": simulator.clientId,
      password: "a+b %/ü",
    },
  });
  expect(jsonOf(answer)).toEqual({ data: { totalSize: 12, checksumAlgorithm: "SHA-256" }, meta: {} });
  expect(simulator.requests().at(-1)).toMatchObject({
    operation: "info",
    status: 200,
    transfer: transfer.trackingId,
    passwordSent: "query",
    queryTwins: ["major-api-version", "minimum-minor-api-version", "product-key", "client-id", "password"],
  });
});

test("a request for an unknown path is refused, with or without headers, and one with a wrong method with the right ones", async () => {
  const simulator = await simulate();
  expect(errorOf(await ask(simulator, "/api/nothing"))).toBe("404/1006");
  expect(errorOf(await ask(simulator, "/", { headers: { "X-CS-ClientId": undefined } }))).toBe("404/1006");
  const answer = await ask(simulator, "/api/password", { method: "PUT" });
  expect([answer.status, answer.headers.allow]).toEqual([405, "GET, POST"]);
});

test("a request with broken escapes is refused, in its path and in its query", async () => {
  const { simulator, path, get } = await simulateOne();
  expect(errorOf(await ask(simulator, "/api/transfers/%zz"))).toBe("400/1005");
  expect(errorOf(await ask(simulator, `${path}?password=%zz`))).toBe("400/1004");
  expect(errorOf(await get("", { headers: { "X-CS-Password": "%zz" } }))).toBe("400/1004");
});

test("a request with a huge body is refused, and one that is not HTTP does not disturb the others either", async () => {
  const simulator = await simulate();
  const body = JSON.stringify({ password: "x".repeat(3_000_000) });
  expect((await ask(simulator, "/api/password", { body })).status).toBe(413);
  expect((await ask(simulator, "/api/password")).status).toBe(200);
  const socket = createConnection(Number(new URL(simulator.url).port), "127.0.0.1");
  socket.on("error", () => {}).resume();
  const closed = new Promise((resolve) => socket.on("close", resolve));
  socket.end("\0\0\0 what is this\r\n\r\n");
  await closed;
  expect((await ask(simulator, "/api/password")).status).toBe(200);
});

test.each([
  ["1.11", "/received-transfers", "404/1006"],
  ["1.11", "/sent-transfers", "404/1006"],
  ["1.11", "", "401/3002"],
  ["1.12", "/received-transfers", "401/3002"],
  ["2.0", "", "404/1006"],
  ["2.0", "/received-transfers", "401/3002"],
])("the version of the service decides which lists exist: %s, %s", async (apiVersion, path, error) => {
  const simulator = await simulate({ apiVersion });
  const [major = ""] = apiVersion.split(".");
  const headers = { "X-CS-MajorApiVersion": major, "X-CS-MinimumMinorApiVersion": "0" };
  const answer = await ask(simulator, `/api/users/a@b.example/transfers${path}`, { headers });
  expect(errorOf(answer)).toBe(error);
});

test("the version of the service decides whether files of a ZIP can be selected", async () => {
  const files = ["a", "b"].map((name) => ({ name, text: name }));
  const sizes = await Promise.all(
    ["1.10", "1.11"].map(async (apiVersion) => {
      const { transfer, get } = await simulateOne({ files }, { apiVersion });
      const query = { "customized-files-ids": transfer.files[0]?.id ?? "" };
      return (await get("/zip", { query })).bytes.length;
    }),
  );
  expect(sizes[0]).toBeGreaterThan(sizes[1] ?? 0);
});

test("the old paths of ZIP, EML and checksums are not files of a transfer otherwise", async () => {
  expect(errorOf(await (await simulateOne()).get("/files/zip"))).toBe("404/2003");
});

test("the simulator has equal ids, passwords and bytes only for equal seeds", async () => {
  const transfers = [plan({ trackingId: "t" })].map(({ password: _, ...rest }) => rest);
  const [first, again, other] = await Promise.all(
    [7, 7, 8].map(async (seed) => {
      const simulator = await simulate({ seed, transfers });
      return { clientId: simulator.clientId, transfers: simulator.transfers() };
    }),
  );
  expect(again).toEqual(first);
  expect(other?.clientId).not.toBe(first?.clientId);
  expect(other?.transfers[0]?.password).not.toBe(first?.transfers[0]?.password);
});
