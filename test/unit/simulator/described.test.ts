/** Every answer of the simulated service is one that the published descriptions allow, to good and to bad requests. */
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { OPERATIONS, type Operation, type Scenario } from "../../../simulator/scenario.ts";
import { describedOperations, judgeAnswer } from "../../support/described-answers.ts";
import { type Asking, ask, errorOf, jsonOf, pathOf, plan, simulate } from "./client.ts";

const ADDRESS = "orders@example.com";
const USER = `/api/users/${ADDRESS}`;
const PACKS = "/api/products/api.rest/language-packs";

/** A service with one transfer, and a good request for each operation. */
async function open(scenario: Scenario = {}) {
  const files = [
    { name: "a.txt", text: "Hello" },
    { name: "b.bin", base64: "AAEC" },
  ];
  const one = plan({ files, message: "Hello", messageRow: "text", fromName: "Anna", cc: ["c@example.com"] });
  const simulator = await simulate({ transfers: [one], ...scenario });
  const [transfer] = simulator.transfers();
  if (transfer === undefined) throw new Error("the scenario has no transfer");
  const call = async (operation: Operation, path: string, asking: Asking = {}) => {
    const answer = await ask(simulator, path, asking);
    const body = answer.headers["content-encoding"] === "gzip" ? gunzipSync(answer.bytes) : answer.bytes;
    const seen = { status: answer.status, contentType: answer.headers["content-type"], body };
    expect(judgeAnswer(operation, seen), `${operation}: ${answer.status} ${answer.text}`).toBeUndefined();
    return answer;
  };
  const tokenOf = async (address: string) => {
    const token = await call("verification-token", `/api/users/${address}/verification/token`, {
      method: "POST",
    });
    return { "X-CS-VerificationToken": jsonOf(token).data.token as string };
  };
  const own = await tokenOf(ADDRESS);
  const sent = await tokenOf(transfer.sender);
  const path = pathOf(transfer);
  const password = "right";
  const sender = `/api/users/${transfer.sender}/transfers`;
  const good: Record<Operation, readonly [path: string, asking?: Asking]> = {
    status: ["/api/status"],
    "client-id": ["/api/clients", { headers: { "X-CS-ClientId": undefined } }],
    verification: [`${USER}/verification`, { headers: own }],
    "verification-code": [`${USER}/verification/code/email`, { method: "POST" }],
    "verification-token": [`${USER}/verification/token`, { method: "POST" }],
    received: [
      `${USER}/transfers/received-transfers`,
      { headers: own, query: { active: "true", page: "1" } },
    ],
    sent: [`${sender}/sent-transfers`, { headers: sent, query: { fields: ALL_FIELDS } }],
    "sent-legacy": [sender, { headers: sent, query: { "page-size": "100" } }],
    info: [path, { password }],
    files: [`${path}/files`, { password }],
    file: [`${path}/files/${transfer.files[0]?.id}`, { password }],
    zip: [`${path}/zip`, { password, query: { "include-checksum-file": "true" } }],
    eml: [`${path}/eml`, { password, query: { threshold: "1" } }],
    checksums: [`${path}/checksums`, { password }],
    "password-generate": ["/api/password"],
    "password-check": ["/api/password", { body: { password: "weak" } }],
    "password-rules": ["/api/password/requirements"],
    languages: [PACKS, { query: { "major-version": "2" } }],
    language: [`${PACKS}/en-US_2`],
    "language-file": [`${PACKS}/en-US_2/messages.properties`],
  };
  return { simulator, transfer, call, good, path };
}

const ALL_FIELDS =
  "trackingId,status,transfer(sender,recipients,expirationDate,fileChecksumAlgorithm,files,confidentialMessageFileId," +
  "notificationMessage,securityMode,senderLanguage,recipientLanguage)";

const all = OPERATIONS.filter((operation) => operation !== "status");

test("every operation is described, and answers a good request as described", async () => {
  expect(describedOperations().toSorted()).toEqual([...OPERATIONS].toSorted());
  const { call, good } = await open();
  // What was downloaded before is in the lists.
  for (const operation of OPERATIONS.toReversed()) {
    expect(await call(operation, ...good[operation])).toMatchObject({ status: 200 });
  }
  const [path, asking] = good.file;
  expect((await call("file", path, { ...asking, headers: { Range: "bytes=1-" } })).status).toBe(206);
});

test("a header that every request needs is refused if it is missing or has another form", async () => {
  const { call, good } = await open();
  const wrong: readonly [header: string, value: string | undefined, error: string][] = [
    ["X-CS-MajorApiVersion", undefined, "400/1002"],
    ["X-CS-MajorApiVersion", "one", "400/1004"],
    ["X-CS-MajorApiVersion", "2", "404/2004"],
    ["X-CS-MinimumMinorApiVersion", undefined, "400/1002"],
    ["X-CS-MinimumMinorApiVersion", "1.5", "400/1004"],
    ["X-CS-MinimumMinorApiVersion", "-1", "400/1004"],
    ["X-CS-MinimumMinorApiVersion", "2147483648", "400/1004"],
    ["X-CS-MinimumMinorApiVersion", "99", "404/2004"],
    ["X-CS-ProductKey", undefined, "400/1002"],
    ["X-CS-ProductKey", "web.app", "400/1004"],
    ["X-CS-ClientId", undefined, "400/1002"],
    ["X-CS-ClientId", "a".repeat(49), "400/1004"],
    ["X-CS-ClientId", `${"a".repeat(60)}-`, "400/1004"],
  ];
  for (const operation of all) {
    const [path, asking] = good[operation];
    for (const [header, value, error] of wrong) {
      if (operation === "client-id" && header === "X-CS-ClientId") continue;
      const headers = { ...asking?.headers, [header]: value };
      const answer = await call(operation, path, { ...asking, headers });
      expect([operation, header, value, errorOf(answer)]).toEqual([operation, header, value, error]);
    }
  }
});

test("another method, a type that is not accepted, and a path that does not exist are refused", async () => {
  const { call, good } = await open();
  for (const operation of all) {
    const [path, asking] = good[operation];
    const statusOf = async (other: Asking, suffix = "") =>
      (await call(operation, path + suffix, { ...asking, ...other })).status;
    expect([operation, await statusOf({ method: "PUT" })]).toEqual([operation, 405]);
    const headers = { ...asking?.headers, Accept: "image/png, text/html;q=0.5" };
    expect([operation, await statusOf({ headers })]).toEqual([operation, 406]);
    const isOpen = ["languages", "language", "language-file"].includes(operation);
    if (!isOpen) expect([operation, await statusOf({}, "/nothing/else")]).toEqual([operation, 404]);
  }
});

test("a parameter or path variable of another type is refused", async () => {
  const { call, good, path } = await open();
  const query: readonly [Operation, string, string][] = [
    ["received", "page", "0"],
    ["received", "page", "one"],
    ["received", "page-size", "9999999999"],
    ["received", "active", "yes"],
    ["received", "fields", "trackingId,nothing"],
    ["sent", "fields", "status(state"],
    ["sent-legacy", "page", "-1"],
    ["zip", "include-checksum-file", "1"],
    ["zip", "is-customized-files-ids-include", "no"],
    ["eml", "threshold", "one"],
    ["languages", "major-version", "two"],
  ];
  for (const [operation, name, value] of query) {
    const [target, asking] = good[operation];
    const answer = await call(operation, target, { ...asking, query: { [name]: value } });
    expect([operation, name, errorOf(answer)]).toEqual([operation, name, "400/1004"]);
  }
  const errorAt = async (operation: Operation, from: string, to: string) => {
    const [target, asking] = good[operation];
    return [operation, errorOf(await call(operation, target.replace(from, to), asking))];
  };
  const transferId = path.slice(path.lastIndexOf("/") + 1);
  for (const operation of ["info", "files", "file", "zip", "eml", "checksums"] as const) {
    expect(await errorAt(operation, transferId, "a,b")).toEqual([operation, "400/1005"]);
    expect(await errorAt(operation, transferId, "%ff")).toEqual([operation, "400/1005"]);
    expect(await errorAt(operation, transferId, "unknown")).toEqual([operation, "404/2003"]);
  }
  for (const operation of ["received", "verification", "verification-code", "verification-token"] as const) {
    expect(await errorAt(operation, ADDRESS, "nobody")).toEqual([operation, "400/1005"]);
  }
  expect(await errorAt("file", "/files/", "/files/x")).toEqual(["file", "404/2003"]);
  expect(await errorAt("language", "en-US_2", "en-US_9")).toEqual(["language", "404/2003"]);
  expect(await errorAt("language-file", "messages", "nothing")).toEqual(["language-file", "404/2003"]);
});

test("a body of another type or form is refused", async () => {
  const { call } = await open();
  const [token, check] = [`${USER}/verification/token`, "/api/password"];
  expect(errorOf(await call("password-check", check, { body: "{" }))).toBe("400/1004");
  expect(errorOf(await call("password-check", check, { body: {} }))).toBe("400/1002");
  expect(errorOf(await call("verification-token", token, { body: { verificationCode: 1 } }))).toBe(
    "400/1004",
  );
  const headers = { "Content-Type": "text/plain" };
  expect((await call("password-check", check, { body: { password: "x" }, headers })).status).toBe(415);
});

test("a password is judged as described, and a transfer that is gone is not deleted once more", async () => {
  for (const [reaction, last, after] of [
    ["delete", "410/2006", "404/2003"],
    ["lock", "403/2005", "403/2005"],
  ] as const) {
    const { call, path } = await open({ wrongPasswords: { limit: 2, reaction } });
    const errorWith = async (password?: string) =>
      errorOf(await call("info", path, password === undefined ? {} : { password }));
    expect(await errorWith()).toBe("400/1002");
    expect(await errorWith("wrong")).toBe("401/3003");
    expect(await errorWith("wrong")).toBe(last);
    expect(await errorWith("right")).toBe(after);
  }
});

test("a client that has not verified an address gets no list and no token", async () => {
  const { call, simulator } = await open({ codesPerAddress: 1 });
  const stranger = { "X-CS-ClientId": "z".repeat(50) };
  const [token, code] = [`${USER}/verification/token`, `${USER}/verification/code/email`];
  for (const list of ["received", "sent", "sent-legacy"] as const) {
    const path = `${USER}/transfers${list === "sent-legacy" ? "" : `/${list}-transfers`}`;
    expect(errorOf(await call(list, path))).toBe("401/3002");
    const headers = { "X-CS-VerificationToken": "nothing" };
    expect(errorOf(await call(list, path, { headers }))).toBe("401/3002");
  }
  const asStranger = { method: "POST", headers: stranger };
  expect(errorOf(await call("verification-token", token, asStranger))).toBe("403/3002");
  expect((await call("verification-code", code, asStranger)).status).toBe(200);
  expect(errorOf(await call("verification-code", code, asStranger))).toBe("429/2007");
  const redeem = (verificationCode = "") =>
    call("verification-token", token, { headers: stranger, body: { verificationCode } });
  expect(errorOf(await redeem("wrong"))).toBe("403/3002");
  const redeemed = await redeem(simulator.mailedCodes(ADDRESS)[0]);
  const verified = async (text: string) => {
    const headers = { ...stranger, "X-CS-VerificationToken": text };
    return jsonOf(await call("verification", `${USER}/verification`, { headers })).data;
  };
  expect(await verified(jsonOf(redeemed).data.token)).toMatchObject({
    verified: true,
    verificationMethods: ["EMAIL"],
  });
  expect(await verified("another")).toEqual({ verified: false, verificationMethods: ["EMAIL"] });
});

test("an older service does not have what came later", async () => {
  const { call, good } = await open({ apiVersion: "1.8" });
  for (const operation of ["status", "received", "sent"] as const) {
    expect([operation, errorOf(await call(operation, ...good[operation]))]).toEqual([operation, "404/1006"]);
  }
});
