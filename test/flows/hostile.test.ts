/** I6 no contagion, I8 bounded: one daemon with a hostile and an honest service. */
import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { install, mailboxKeys } from "../support/installation.ts";
import { startProgram } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { listen } from "../support/servers.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const TRANSFERS = 12;
const MAX_MEMORY_KIB = 300 * 1024;
/** Longer than a busy machine needs for a request without disk or network. */
const HEALTH_TIMEOUT_MS = 30_000;

/** The list of each of its mailboxes. */
const LISTS: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => void>> = {
  // A few kilobytes that decompress to millions of values.
  bomb: (_request, response) => sendPacked(response, BOMB),
  nested: (_request, response) => sendPacked(response, NESTED),
  // New transfers on every page, for ever, which cannot be downloaded.
  endless: (request, response) => sendJson(response, { data: entriesOf(pageOf(request)) }),
  // Invalid entries only.
  wrong: (_request, response) =>
    sendJson(response, { data: Array.from({ length: 900 }, () => ({ trackingId: 7 })) }),
  // One byte at a time.
  dripping: (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" }).write('{"data":[');
    const timer = setInterval(() => response.write(" "), 500);
    response.on("close", () => clearInterval(timer));
  },
  silent: () => {},
  page: (_request, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>"),
};

test("an honest service is mirrored within seconds, memory stays bounded, and health answers all the time", async () => {
  const hostile = await listen(createServer(misbehave));
  const port = await freePort();
  const names = Array.from({ length: TRANSFERS }, (_, at) => `t${String(at).padStart(2, "0")}`);
  const addresses = Object.keys(LISTS).flatMap((kind) => [1, 2, 3].map((at) => `${kind}${at}@example.com`));
  const { config, inbox } = await install(
    { transfers: names.map((trackingId) => transferPlan({ trackingId })) },
    {
      http: { listen: `127.0.0.1:${port}` },
      mailboxes: [
        ...addresses.map((email) => ({ ...mailboxKeys(email), service: { baseUrl: hostile } })),
        mailboxKeys(MAILBOX),
      ],
    },
  );
  const program = startProgram(["run", "--config", config]);
  let lines = 0;
  program.stderr?.on("data", (chunk: Buffer) => (lines += chunk.toString().split("\n").length - 1));
  program.stdout?.on("data", (chunk: Buffer) => (lines += chunk.toString().split("\n").length - 1));
  const isHealthy = () =>
    fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS) }).then(
      ({ status }) => status,
    );
  await expect.poll(() => isHealthy().catch(() => 0)).toBe(200);
  const failures: unknown[] = [];
  const watch = setInterval(() => void isHealthy().catch((error: unknown) => failures.push(error)), 200);
  onTestFinished(() => clearInterval(watch));
  const delivered = () => readdir(join(inbox, MAILBOX, "anna@supplier.example")).catch(() => []);
  const begunMs = performance.now();
  await expect.poll(delivered).toEqual(names);
  const tookS = ((performance.now() - begunMs) / 1000).toFixed(1);
  // It stays like that.
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  expect(failures).toEqual([]);
  const memory = memoryOf(program.pid ?? 0);
  process.stdout.write(`beside a hostile service: ${tookS} s, ${memory >> 10} MiB, ${lines} log lines\n`);
  expect(memory).toBeLessThan(MAX_MEMORY_KIB);
  expect(lines).toBeLessThan(1_000);
});

function misbehave(request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? "", "http://hostile.example");
  const [, kind = ""] = /^\/api\/users\/([a-z]+)\d/.exec(decodeURIComponent(pathname)) ?? [];
  if (pathname.endsWith("/token")) {
    sendJson(response, { data: { token: "token", validUntil: "2100-01-01T00:00:00Z" } });
  } else if (pathname.endsWith("/received-transfers")) LISTS[kind]?.(request, response);
  else if (pathname.endsWith("/files")) sendPacked(response, BOMB);
  else if (/\/transfers\/[^/]+$/.test(pathname)) {
    // Half of its transfers can be opened, and then are slow.
    if (pathname.length % 2 === 0)
      sendJson(response, { data: { totalSize: 5, checksumAlgorithm: "SHA-256" } });
  } else response.writeHead(500).end("x".repeat(100_000));
}

/** Peak memory of the process in KiB. */
function memoryOf(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter(Boolean);
  const peaks = [String(pid), ...children].map((id) => {
    const [, peak = "0"] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8")) ?? [];
    return Number(peak);
  });
  return Math.max(...peaks);
}

const BOMB = gzipSync(`{"data":[{"trackingId":"b","status":{"recipients":[${"1,".repeat(8_000_000)}1]}}]}`);
const NESTED = gzipSync(`{"data":${"[".repeat(4_000_000)}`);

function entriesOf(page: number) {
  return Array.from({ length: 100 }, (_, at) => ({
    trackingId: `${page}-${at}`,
    status: {
      sender: { email: "x@example.com" },
      recipients: ["bomb", "endless"].flatMap((kind) =>
        [1, 2, 3].map((number) => ({
          mail: `${kind}${number}@example.com`,
          id: `id-${page}-${at}`,
          downloadUrl: `https://hostile.example/${"long/".repeat(2_000)}?password=x`,
        })),
      ),
    },
  }));
}

function pageOf(request: IncomingMessage): number {
  return Number(new URL(request.url ?? "", "http://hostile.example").searchParams.get("page") ?? 1);
}

function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function sendPacked(response: ServerResponse, packed: Buffer): void {
  response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(packed);
}
