/** Inputs of strangers who send no transfers: callers of the console, consumers who write into the inbox, and orders. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ORDER_BYTES } from "../../src/base/bounds.ts";
import { holdDeliveries } from "../../src/inbox/traces.ts";
import { listOrders } from "../../src/ledger/orders.ts";
import {
  MANIFEST,
  manifestBound,
  readDeliveryId,
  readManifest,
  readSums,
  SUMS,
} from "../../src/model/manifest.ts";
import type { Input } from "../cases/costs.ts";
import { requestOf, sendBytes } from "./console.ts";

const SUM = "0123456789abcdef".repeat(4);
/** The sums and the manifest may be those of so many files. */
const FILES = 100_000;
const JSON_TYPE = "Content-Type: application/json\r\n";
const FORM = "Content-Type: application/x-www-form-urlencoded\r\n";
const LARGE = `X-Large: ${"x".repeat(8_000)}\r\n`;
const WRONG = `Authorization: Bearer ${"x".repeat(20)}\r\n`;
const ORDER = { action: "retry", mailbox: "m", trackingId: "t", by: { who: "x", from: "x" } };

/** A megabyte of each. */
const BYTES: Readonly<Record<string, Input>> = {
  "small requests": sendBytes(requestOf("GET", "/api/status")),
  "requests with large heads": sendBytes(requestOf("GET", "/healthz", LARGE)),
  "heads without an end": sendBytes(requestOf("GET", "/", LARGE).slice(0, -2), true),
  "heads that are no HTTP": sendBytes("\0".repeat(100)),
  "forms to sign in": sendBytes(requestOf("POST", "/sign-in", FORM, `token=${"x".repeat(4_000)}`)),
  "forms without a session": sendBytes(requestOf("POST", "/actions", FORM, "t=".repeat(8_000))),
  "orders without a token": sendBytes(requestOf("POST", "/api/actions", JSON_TYPE, "[".repeat(16_000))),
  "requests with wrong tokens": sendBytes(requestOf("GET", "/api/status", WRONG)),
  "requests for event streams": sendBytes(requestOf("GET", "/api/events"), true),
  "a changed manifest of one line": changed(MANIFEST, (bytes) => "x".repeat(bytes)),
  "a changed manifest of nested lists": changed(MANIFEST, (bytes) => "[".repeat(bytes)),
  "a changed manifest of lines with nested lists": changed(MANIFEST, (bytes) => "[\n".repeat(bytes / 2)),
  "a changed manifest of files": changed(MANIFEST, (bytes) => listing(bytes, fileAt)),
  "a changed manifest of one wrong file": changed(MANIFEST, (bytes) => listing(bytes, () => "")),
  "a changed manifest of files without an end": changed(MANIFEST, (bytes) => "    {\n".repeat(bytes / 6)),
  "changed sums": changed(SUMS, (bytes) => repeated(bytes, (at) => `${SUM}  ${at}\n`)),
  "changed sums of one line": changed(SUMS, (bytes) => "x".repeat(bytes)),
  "changed sums of empty lines": changed(SUMS, (bytes) => "\n".repeat(bytes)),
  "large orders": planted(
    (at) => [`orders/${at + 1}.json`, JSON.stringify({ ...ORDER, reason: "x".repeat(ORDER_BYTES / 2) })],
    listOrders,
    ORDER_BYTES / 2,
  ),
};

export const DOORS: Readonly<Record<string, readonly [largest: number, input: Input]>> = {
  ...Object.fromEntries(
    Object.entries(BYTES).map(([what, input]) => [`bytes of ${what}`, [1_000_000, input] as const]),
  ),
  "files in an inbox": [10_000, planted((at) => [`${at}`, ""], holdsDeliveries)],
  "folders in an inbox": [5_000, planted((at) => [`${at}/file`, ""], holdsDeliveries)],
  "levels of folders in an inbox": [
    1_000,
    planted((at, count) => [at === 0 ? `${"d/".repeat(count)}file` : "file", ""], holdsDeliveries),
  ],
  "orders that are none": [5_000, planted((at) => [`orders/${at + 1}.json`, "[]"], listOrders)],
};

/** A file of a delivered folder with another text, and everything that reads it. */
function changed(name: string, textOf: (bytes: number) => string): Input {
  return async (bytes, folder) => {
    await writeFile(join(folder, name), textOf(bytes));
    if (name === SUMS) return () => readSums(folder, FILES);
    return async () => {
      await readDeliveryId(folder, manifestBound());
      await readManifest(folder, manifestBound({ files: FILES }));
    };
  };
}

/** Files in a folder, as many as `bytesOfEach` demands. */
function planted(
  fileOf: (at: number, count: number) => readonly [path: string, text: string],
  read: (folder: string) => Promise<unknown>,
  bytesOfEach = 1,
): Input {
  return async (count, folder) => {
    for (let at = 0; at < count / bytesOfEach; at++) {
      const [path, text] = fileOf(at, count);
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    return () => read(folder);
  };
}

/** Its layout is as deep as a path may be. */
function holdsDeliveries(inbox: string): Promise<boolean> {
  return holdDeliveries([{ inbox, layout: "{sender}/".repeat(2_000) }]);
}

function listing(bytes: number, textOf: (at: number) => string): string {
  return `{\n  "files": [\n${repeated(bytes, (at) => `    {\n${textOf(at)}\n    },\n`)}`;
}

function fileAt(at: number): string {
  const file = { name: `${at}.pdf`, originalName: `${at}.pdf`, size: 1, sha256: SUM, verified: false };
  return JSON.stringify(file).slice(1, -1);
}

function repeated(bytes: number, textOf: (at: number) => string): string {
  const count = Math.ceil(bytes / textOf(0).length);
  return Array.from({ length: count }, (_, at) => textOf(at)).join("");
}
