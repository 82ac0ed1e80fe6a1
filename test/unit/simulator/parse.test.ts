/** Scenario files: their keys, messages about mistakes, and their reference. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SCENARIO_REFERENCE } from "../../../simulator/reference.ts";
import { sampleScenario } from "../../../simulator/samples.ts";
import { type Misbehaviour, OPERATIONS, parseScenario, type Scenario } from "../../../simulator/scenario.ts";
import { ask, pathOf, plan, simulate } from "./client.ts";

const everyMisbehaviour: readonly Misbehaviour[] = [
  { kind: "reset", afterBytes: 1 },
  { kind: "stall", afterBytes: 1, seconds: 0.5 },
  { kind: "drip", bytes: 1, pauseMs: 1 },
  { kind: "truncate", afterBytes: 1, announce: true },
  { kind: "lengthen", bytes: 1 },
  { kind: "corrupt", at: 1 },
  { kind: "error", status: 500, errorCode: 1, errorMessage: "x", retryAfter: "1" },
  { kind: "html", status: 502 },
  { kind: "body", text: "x", contentType: "text/plain" },
  { kind: "alter", path: "data", value: null },
  { kind: "redirect", to: "/x", status: 307 },
  { kind: "range", mode: "lie" },
  { kind: "omit", headers: ["etag"] },
  { kind: "change-etag" },
  { kind: "shift", by: -1 },
  { kind: "repeat", entries: 1 },
  { kind: "endless" },
  { kind: "encoding", encoding: "br" },
];

test("a scenario may have every key, or none", () => {
  const scenario: Scenario = {
    seed: 5,
    apiVersion: "1.12",
    clientId: "x".repeat(50),
    tokenSeconds: 60,
    wrongPasswords: { limit: 2, reaction: "lock", lockSeconds: 60 },
    retentionDays: 1,
    maxPageSize: 10,
    csv: {
      delimiter: "\t",
      quote: "all",
      byteOrderMark: true,
      charset: "utf-8",
      lineEnd: "\n",
      subject: "empty",
    },
    passwordRules: { minimumLengthRequired: 5, blacklistedCharactersDeclined: "x", lettersRequired: true },
    oldPaths: true,
    languagePacks: [
      { locale: "en", displayName: "English", version: "1.0", lastChangeTimestamp: null, files: {} },
    ],
    transfers: [
      plan({ cc: ["b@example.com"], processingSeconds: 1, expiresInSeconds: -1, algorithm: "none" }),
    ],
    faults: everyMisbehaviour.map((does) => ({
      on: "file",
      transfer: "t",
      file: "f",
      skip: 1,
      times: "always",
      does,
    })),
  };
  expect(parseScenario(structuredClone(scenario))).toEqual(scenario);
  expect(parseScenario({})).toEqual({});
});

test.each<[unknown, string]>([
  [null, "must be an object"],
  [[], "must be an object"],
  [{ transfer: [] }, "transfer: unknown key, did you mean transfers?"],
  [{ colour: "red" }, "colour: unknown key, known: seed, apiVersion,"],
  [{ apiVersion: 1.12 }, "apiVersion: "],
  [{ apiVersion: "1" }, "apiVersion: must be major.minor"],
  [{ clientId: "short" }, "clientId: must be 50 to 4000 letters and digits"],
  [{ csv: { delimeter: ";" } }, "csv.delimeter: unknown key, did you mean delimiter?"],
  [{ passwordRules: { upperCaseRequired: false } }, "passwordRules.upperCaseRequired: must be true"],
  [{ transfers: [{ to: ["a@b.c"], files: [] }] }, "transfers.0.from: is required"],
  [{ transfers: [plan({ to: [] })] }, "transfers.0: needs a recipient"],
  [{ transfers: [plan({ cc: ["Orders@example.com"] })] }, "transfers.0: names the same recipient twice"],
  [{ transfers: [plan({ files: [{ name: "x", base64: "a" }] })] }, "files.0.base64: is not base64"],
  [{ transfers: [plan({ files: [{ name: "x", text: "", base64: "" }] })] }, "files.0: needs exactly one"],
  [{ faults: [{ does: {} }] }, "faults.0.does.kind: "],
  [{ faults: [{ times: "often", does: { kind: "endless" } }] }, "faults.0.times: must be a whole number"],
])("a scenario with %j is refused by key", (json, message) => {
  expect(() => parseScenario(json)).toThrow(message);
});

test("a scenario has all its mistakes reported at once, and opens no simulator", async () => {
  expect(() => parseScenario({ seed: "x", port: 1 })).toThrow(/^seed: .*\nport: unknown key/);
  const wrong = { transfers: [plan({ trackingId: "t" }), plan({ trackingId: "t" })] };
  await expect(simulate(wrong)).rejects.toThrow("trackingId: transfer t exists already");
});

test("the sample scenario has transfers that open with its passwords", async () => {
  const simulator = await simulate(sampleScenario);
  const statuses = await Promise.all(
    simulator.transfers().map(async (transfer) => {
      const { status } = await ask(simulator, pathOf(transfer), { password: transfer.password });
      return `${transfer.state} ${status}`;
    }),
  );
  expect(statuses.filter((status) => status === "Active 200")).toHaveLength(7);
  expect(statuses.slice(-2)).toEqual(["Processing 404", "Deleted_by_expiration 404"]);
});

const source = readFileSync(join(import.meta.dirname, "../../../simulator/scenario.ts"), "utf8");

test("the reference explains every key, operation and kind of fault of a scenario, on a terminal of 92 columns", () => {
  const rules = /const passwordRules = .*?\n\}/s;
  const schemas = source.slice(source.indexOf("const filePlan")).replace(rules, "");
  const entries = schemas.matchAll(/(\w+): (?=text|count|seconds|atLeastOne|misbehaviour|optional|v\.)/g);
  const keys = [...entries].map(([, key]) => key ?? "");
  const kinds = [...schemas.matchAll(/kind: v.literal\("([a-z-]+)"/g)].map(([, kind]) => `"${kind}"`);
  expect(new Set(keys).size).toBeGreaterThan(80);
  expect(kinds.length).toBeGreaterThan(15);
  const missing = [...keys, ...kinds, ...OPERATIONS].filter((word) => !SCENARIO_REFERENCE.includes(word));
  expect(missing).toEqual([]);
  expect(SCENARIO_REFERENCE.split("\n").filter((line) => line.length > 92)).toEqual([]);
});
