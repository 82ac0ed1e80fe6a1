/**
 * Costs that a sender or a service can impose: the CPU time of an input that is ten times as large, and the longest time
 * for which one input keeps the other work of the daemon waiting. Both are CPU time, so other programs matter little.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { Secret } from "../../src/base/secret.ts";
import { safeNamesInTurns } from "../../src/inbox/names.ts";
import { decideRoute, factsOf } from "../../src/model/route.ts";
import type { TransferFile } from "../../src/model/transfer.ts";
import { parseChecksums } from "../../src/service/checksums.ts";
import { openService } from "../../src/service/open.ts";
import type { Bench } from "../support/bench.ts";
import { alone, besides, type Row } from "../support/rows.ts";

/** One input of `count` items. */
type Input = (count: number) => () => Promise<unknown>;

const SUM = "0123456789abcdef".repeat(4);
const MARKS = "\u0301\u0316".repeat(200);
const ROUTES = {
  routes: [{ name: "xml", action: "deliver", when: { file: ["*.xml"] } }],
  otherwise: "hold",
} as const;
/** The service may be slow to answer. */
const TIMEOUT_MS = 60_000;

const INPUTS: Readonly<Record<string, readonly [largest: number, input: Input]>> = {
  "names of files that differ": [100_000, named((at) => `report ${at}.pdf`)],
  "names of files that are all the same": [100_000, named(() => "report.pdf")],
  "names of 400 combining marks": [10_000, named((at) => `a${MARKS}${at}`)],
  "names of 400 characters, each of which stands for 18": [1_000, routed((at) => "\ufdfa".repeat(400) + at)],
  "names of files, and a route": [100_000, routed((at) => `report ${at}.pdf`)],
  "names of 4,000 characters, and a route": [1_000, routed((at) => "a".repeat(4_000) + at)],
  "rows of a checksums file": [100_000, checksums((name) => `"${name}","${SUM} (SHA-256)"\n`)],
  "rows with broken quotes": [100_000, checksums((name) => `"${name}"x","${SUM} (SHA-256)"\n`)],
  "rows without checksums": [100_000, checksums((name) => `${name};x;"y,${SUM}\n`)],
  "entries of a file list": [100_000, answered(filesIn, listFiles)],
  "levels of nested JSON in a page": [
    90_000,
    answered((count) => "[".repeat(count) + "]".repeat(count), poll),
  ],
  "recipients in a page": [10_000, answered(entryWith, poll)],
};

export async function measureCosts({ scale, log }: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [what, [largest, input]] of Object.entries(INPUTS)) {
    const count = Math.round(largest * scale);
    // Not measured: compiles the code.
    await measure(input(Math.ceil(count / 10)));
    const tenth = await measure(input(Math.ceil(count / 10)));
    const whole = await measure(input(count));
    const all = `${count.toLocaleString("en")} ${what}`;
    rows.push(besides(all, "with a tenth of them", "ms", [whole.cpuMs, tenth.cpuMs], [20, 10]));
    rows.push(alone(`${all}: the longest time without other work`, "ms", whole.longestMs, [200, 50]));
    log(`  ${all}: ${whole.cpuMs.toFixed(0)} ms, at most ${whole.longestMs.toFixed(0)} ms at once`);
  }
  return rows;
}

async function measure(work: () => Promise<unknown>): Promise<{ cpuMs: number; longestMs: number }> {
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
    return () => safeNamesInTurns(files, ["transfer.json"]);
  };
}

function routed(nameOf: (at: number) => string): Input {
  return (count) => {
    const facts = factsOf({ sender: "anna@supplier.example" }, filesNamed(nameOf, count));
    return () => decideRoute(ROUTES, facts);
  };
}

function checksums(rowOf: (name: string) => string): Input {
  return (count) => {
    const files = filesNamed((at) => `report ${at}.pdf`, count);
    const csv = Buffer.from(`"Name","Checksum"\n${files.map(({ name }) => rowOf(name)).join("")}`);
    return () => parseChecksums(csv, "text/csv", files);
  };
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

async function askServed(answer: string, ask: Ask): Promise<void> {
  const server = createServer((_request, response) => response.end(answer)).listen(0, "127.0.0.1");
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
