/**
 * Costs that a sender or a service can impose: the CPU time of an input that is ten times as large, and the longest time
 * for which one input keeps the other work of the daemon waiting. Both are CPU time, so other programs matter little.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type OutgoingHttpHeaders, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { writeFinished } from "../../src/base/durable.ts";
import { addressForm, fileNameForm, textForm } from "../../src/base/normal-form.ts";
import { Secret } from "../../src/base/secret.ts";
import { digestOf, formatManifest } from "../../src/model/manifest.ts";
import { safeNames } from "../../src/model/names.ts";
import { decideRoute, factsOf } from "../../src/model/route.ts";
import type { TransferFile } from "../../src/model/transfer.ts";
import { parseChecksums } from "../../src/service/checksums.ts";
import { openService } from "../../src/service/service.ts";
import { makeRecord } from "../../test/support/record.ts";
import type { Bench } from "../support/bench.ts";
import { postForm, postJson, searchText, sendCookies, visitTimes } from "../support/console.ts";
import { DOORS } from "../support/doors.ts";
import { alone, besides, type Row } from "../support/rows.ts";

/** One input of `count` items. `folder`: an empty one, for files. */
export type Input = (
  count: number,
  folder: string,
) => (() => Promise<unknown>) | Promise<() => Promise<unknown>>;

const SUM = "0123456789abcdef".repeat(4);
const MARKS = "\u0301\u0316".repeat(200);
const ROUTES = {
  routes: [{ name: "xml", action: "deliver", when: { file: ["*.xml"] } }],
  otherwise: "hold",
} as const;
const RECORD = makeRecord();
/** The service may be slow to answer. */
const TIMEOUT_MS = 60_000;

export const INPUTS: Readonly<Record<string, readonly [largest: number, input: Input]>> = {
  "names of files that differ": [100_000, named((at) => `report ${at}.pdf`)],
  "names of files that are all the same": [100_000, named(() => "report.pdf")],
  "names of 400 combining marks": [10_000, named((at) => `a${MARKS}${at}`)],
  "names of 400 characters, each of which stands for 18": [1_000, routed((at) => "\ufdfa".repeat(400) + at)],
  "names of files, and a route": [100_000, routed((at) => `report ${at}.pdf`)],
  "names of 4,000 characters, and a route": [1_000, routed((at) => "a".repeat(4_000) + at)],
  "rows of a checksums file": [100_000, checksums((name) => `"${name}","${SUM} (SHA-256)"\n`)],
  "rows with broken quotes": [100_000, checksums((name) => `"${name}"x","${SUM} (SHA-256)"\n`)],
  "rows without checksums": [100_000, checksums((name) => `${name};x;"y,${SUM}\n`)],
  "rows of a name that is always the same": [100_000, checksums(() => `a,${SUM} (SHA-256)\n`)],
  "blanks in a checksum": [
    10_000,
    checksums((name, count) => `${name},abcdef0123 (${" ".repeat(count)}\n`, 1),
  ],
  "quotes in a name": [100_000, checksums((name, count) => `"${name}""${'""'.repeat(count)}\n`, 1)],
  "cells of a row": [100_000, checksums((name, count) => `${name}${",x;\t".repeat(count)}\n`, 1)],
  ...Object.fromEntries(formed()),
  "entries of a file list": [100_000, answered(filesIn, listFiles)],
  "levels of nested JSON in a page": [
    90_000,
    answered((count) => "[".repeat(count) + "]".repeat(count), poll),
  ],
  "recipients in a page": [10_000, answered(entryWith, poll)],
  "files of a manifest": [100_000, listed],
  "headers of an answer": [10_000, headed((count) => headersOf(count, (at) => [`x-header-${at}`, "text"]))],
  "cookies in an answer": [
    10_000,
    headed((count) => ({ "set-cookie": Array.from({ length: count }, (_, at) => `c${at}=text; Path=/`) })),
  ],
  "characters of a date and of a pause": [
    15_000,
    headed((count) => ({ date: "(".repeat(count / 2), "retry-after": "1 ".repeat(count / 4) }), 503),
  ],
  "characters of a redirect": [
    15_000,
    headed((count) => ({ location: `/${"%2e/".repeat(count / 4)}` }), 307),
  ],
  "characters of an error": [60_000, refused],
  "kilobytes of a message": [10_000, sentInPieces((count) => [count, "x".repeat(1_000)])],
  "pieces of a message": [100_000, sentInPieces((count) => [count, "x"])],
  "cookies that a visitor sends": [1_000, sendCookies],
  "visits without a session": [1_000, visitTimes],
  "transfers in a posted form": [10_000, postForm],
  "transfers in a posted order": [10_000, postJson((at) => `{"mailbox":"m","trackingId":"T-${at}"}`)],
  "wrong values in a posted order": [250_000, postJson(() => "0")],
  "levels of nested JSON in a posted order": [
    250_000,
    postJson((at, count) => (at === 0 ? "[".repeat(count) + "]".repeat(count) : undefined)),
  ],
  "characters of a search": [15_000, searchText],
  ...DOORS,
};

export async function measureCosts({ scale, folder, log }: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [what, [largest, input]] of Object.entries(INPUTS)) {
    const count = Math.round(largest * scale);
    const take = async (some: number) => measure(await input(some, await mkdtemp(join(folder, "input-"))));
    // Not measured: compiles the code.
    await take(Math.ceil(count / 10));
    const tenth = await take(Math.ceil(count / 10));
    const whole = await take(count);
    const all = `${count.toLocaleString("en")} ${what}`;
    rows.push(besides(all, "with a tenth of them", "ms", [whole.cpuMs, tenth.cpuMs], [20, 10]));
    rows.push(alone(`${all}: the longest time without other work`, "ms", whole.longestMs, [200, 50]));
    const growth = `${(whole.cpuMs / tenth.cpuMs).toFixed(1)} × a tenth`;
    log(
      `  ${all}: ${whole.cpuMs.toFixed(0)} ms (${growth}), at most ${whole.longestMs.toFixed(0)} ms at once`,
    );
  }
  return rows;
}

/** The CPU time, and the longest part of it without a pause. */
export async function measure(work: () => Promise<unknown>): Promise<{ cpuMs: number; longestMs: number }> {
  const startedMs = threadMs();
  let [lastMs, longestMs] = [startedMs, 0];
  const look = () => {
    const nowMs = threadMs();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
  };
  const timer = setInterval(look, 1);
  // A hostile input is refused.
  await work().catch(() => {});
  const cpuMs = threadMs() - startedMs;
  await pause(5);
  look();
  clearInterval(timer);
  return { cpuMs, longestMs };
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function filesNamed(nameOf: (at: number) => string, count: number): TransferFile[] {
  return Array.from({ length: count }, (_, at) => {
    return { id: String(at), name: nameOf(at), bytes: 1, checksum: undefined };
  });
}

function named(nameOf: (at: number) => string): Input {
  return (count) => {
    const files = filesNamed(nameOf, count);
    return () => safeNames(files, ["transfer.json"]);
  };
}

function routed(nameOf: (at: number) => string): Input {
  return (count) => {
    const facts = factsOf({ sender: "anna@supplier.example" }, filesNamed(nameOf, count));
    return () => decideRoute(ROUTES, facts);
  };
}

function checksums(rowOf: (name: string, count: number) => string, rows?: number): Input {
  return (count) => {
    const files = filesNamed((at) => `report ${at}.pdf`, rows ?? count);
    const csv = Buffer.from(`"Name","Checksum"\n${files.map(({ name }) => rowOf(name, count)).join("")}`);
    return () => parseChecksums(csv, "text/csv", files);
  };
}

/** Texts that repeat one piece, in all forms in which texts of senders are compared. */
function formed(): [what: string, input: readonly [number, Input]][] {
  return [".", " ", ". ", "\u200b", "。", "\u0301", "a."].map((piece) => {
    const input: Input = (count) => async () => {
      for (const form of [textForm, fileNameForm, addressForm]) form(`${piece.repeat(count)}x`);
    };
    return [`times ${JSON.stringify(piece)} in a text`, [1_000_000, input]];
  });
}

type Service = ReturnType<typeof openService>;
type Ask = (service: Service, signal: AbortSignal) => Promise<unknown>;

/** `entriesOf`: the text of the list `data`. */
function answered(entriesOf: (count: number) => string, ask: Ask): Input {
  return (count) => {
    const answer = `{"data":[${entriesOf(count)}]}`;
    return () => askServed(answer, ask);
  };
}

async function askServed(answer: string | RequestListener, ask: Ask): Promise<void> {
  const listener: RequestListener =
    typeof answer === "string" ? (_request, response) => response.end(answer) : answer;
  // undici limits the headers itself.
  const server = createServer(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const service = openService({
    baseUrl: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    clientId: new Secret("client"),
    acceptLanguage: "en",
    userAgent: "bench",
    proxy: { http: "", https: "", except: "" },
    ca: undefined,
    cert: undefined,
    key: undefined,
    timeoutMs: TIMEOUT_MS,
    maxRequests: () => 16,
    idListForm: "repeat",
  });
  try {
    await ask(service, AbortSignal.timeout(TIMEOUT_MS));
  } finally {
    await service.close();
    server.close();
  }
}

/** Answers with these headers. */
function headed(headersOf: (count: number) => OutgoingHttpHeaders, status = 200): Input {
  return (count) => {
    const headers = headersOf(count);
    return () => askServed((_request, response) => response.writeHead(status, headers).end(), poll);
  };
}

function headersOf(count: number, headerOf: (at: number) => readonly [string, string]): OutgoingHttpHeaders {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => headerOf(at)));
}

function refused(count: number) {
  const answer = JSON.stringify({ errorCode: 3000, errorMessage: "\u0001client ".repeat(count / 14) });
  return () => askServed((_request, response) => response.writeHead(400).end(answer), poll);
}

/** An EML that arrives in as many writes. */
function sentInPieces(piecesOf: (count: number) => readonly [pieces: number, piece: string]): Input {
  return (count) => {
    const [pieces, piece] = piecesOf(count);
    const listener: RequestListener = async (_request, response) => {
      for (let at = 0; at < pieces; at++) {
        if (!response.write(piece)) await new Promise((resolve) => response.once("drain", resolve));
      }
      response.end();
    };
    return () => askServed(listener, readMessage);
  };
}

async function readMessage(service: Service, signal: AbortSignal): Promise<void> {
  const { body } = await service.openEml({ transferId: "t", password: new Secret("p") }, {}, signal);
  for await (const _ of body);
}

/** The manifest is written and identified. */
function listed(count: number) {
  const files = filesNamed((at) => `report ${at}.pdf`, count).map(({ name, bytes: size }) => {
    const facts = { name, originalName: name, size, checksum: SUM, algorithm: "SHA-256" };
    return { ...facts, sha256: SUM, verified: true };
  });
  const contents = { message: "none", files } as const;
  return async () => {
    await digestOf(contents);
    const folder = await mkdtemp(join(tmpdir(), "inlet-costs-"));
    await writeFinished(join(folder, "a"), () => formatManifest(RECORD, "n", contents), 0o600);
    await rm(folder, { recursive: true });
  };
}

function listFiles(service: Service, signal: AbortSignal): Promise<unknown> {
  return service.files({ transferId: "t", password: new Secret("p") }, signal);
}

function filesIn(count: number): string {
  return Array.from({ length: count }, (_, at) => `{"id":"${at}","fileName":"a","size":1}`).join();
}

function poll(service: Service, signal: AbortSignal): Promise<unknown> {
  return service.pollReceived({ email: "me@example.com", token: new Secret("token") }, {}, signal);
}

function entryWith(recipients: number): string {
  const all = Array.from(
    { length: recipients },
    (_, at) => `{"mail":"branch-${at}@example.com","id":"${at}"}`,
  );
  return `{"trackingId":"t","status":{"recipients":[${all.join()}]}}`;
}
