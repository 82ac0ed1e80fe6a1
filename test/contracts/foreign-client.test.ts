/**
 * A client that was not written for the simulator: an older minimum version, the password in the query, unescaped
 * addresses in paths, and files fetched by their href. Other programs for this interface work like this.
 */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { fromBufferPromise } from "yauzl";
import { openTestSimulator, transferPlan } from "../support/service.ts";

test("another client can use the simulator", async () => {
  const simulator = await openTestSimulator({ transfers: [transferPlan()] });
  const [transfer] = simulator.transfers();
  const headers: Record<string, string> = {
    "X-CS-MajorApiVersion": "1",
    "X-CS-MinimumMinorApiVersion": "9",
    "X-CS-ProductKey": "api.rest",
    "Content-Type": "application/json",
  };
  const ask = (path: string, init: RequestInit = {}) => fetch(simulator.url + path, { ...init, headers });
  const data = async <Data>(path: string, init: RequestInit = {}): Promise<Data> =>
    ((await (await ask(path, init)).json()) as { data: Data }).data;

  headers["X-CS-ClientId"] = (await data<{ clientId: string }>("/api/clients")).clientId;
  const rules = await data<{ name: string }[]>("/api/password/requirements");
  expect(rules.map((rule) => rule.name)).toContain("minimumLengthRequired");
  const { password: generated } = await data<{ password: string }>("/api/password");
  const check = { method: "POST", body: JSON.stringify({ password: generated }) };
  expect(await data("/api/password", check)).toMatchObject({ valid: true, rulesNotFulfilled: [] });
  const packs = await data<{ locale: string }[]>("/api/products/api.rest/language-packs");
  expect(packs.map((pack) => pack.locale)).toContain("en-US");

  const base = `/api/transfers/${transfer?.recipients[0]?.transferId}`;
  const secret = `password=${encodeURIComponent(transfer?.password ?? "")}`;
  expect(await data(`${base}?${secret}`)).toEqual({ totalSize: 13, checksumAlgorithm: "SHA-256" });
  for (const file of await data<{ href: string; checksum: string }[]>(`${base}/files?${secret}`)) {
    const body = Buffer.from(await (await ask(file.href)).arrayBuffer());
    expect(createHash("sha256").update(body).digest("hex")).toBe(file.checksum);
  }
  const zip = await fromBufferPromise(Buffer.from(await (await ask(`${base}/zip?${secret}`)).arrayBuffer()));
  expect(zip.entryCount).toBe(2);

  const user = "/api/users/me@example.com";
  await ask(`${user}/verification/code/email`, { method: "POST" });
  const code = { verificationCode: simulator.mailedCodes("me@example.com")[0] };
  const proof = { method: "POST", body: JSON.stringify(code) };
  const { token } = await data<{ token: string }>(`${user}/verification/token`, proof);
  headers["X-CS-VerificationToken"] = token;
  expect(await data(`${user}/verification`)).toMatchObject({ verified: true });
  expect(await data(`${user}/transfers`)).toEqual([]);
});
