/**
 * Hostile callers of the console, or consumers that put hostile files into each delivered folder, as a program of its own:
 * `node strangers.ts callers PORT TRACKING_ID…` or `node strangers.ts consumers FOLDER`. Runs until it is killed.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const LARGE = ["/api/transfers?size=5000", "/api/history?limit=5000", "/history", "/metrics", "/transfers"];
const AGAIN_MS = 100;
const MANIFEST = "transfer.json";
const SPARSE_BYTES = 512 * 1024 ** 2;
const LEVELS = 1_000;
const ENTRIES = 2_000;

interface Stranger {
  readonly connections: number;
  /** Sent on each connection. */
  request(at: number): string;
  /** Read nothing. */
  readonly isDeaf?: boolean;
  /** Without one, until the console closes the connection. */
  readonly staysMs?: number;
  /** Before the next connection. */
  readonly pauseMs?: number;
}

const STRANGERS: readonly Stranger[] = [
  { connections: 150, request: (at) => get(LARGE[at % LARGE.length] ?? "/"), isDeaf: true },
  { connections: 100, request: () => `${head("POST", "/sign-in")}Content-Length: 100\r\n\r\ntoken=` },
  // A flood: they come back at once.
  {
    connections: 500,
    request: () => `${head("POST", "/sign-in")}Content-Length: 100\r\n\r\ntoken=`,
    pauseMs: 0,
  },
  { connections: 50, request: () => `${head("POST", "/api/actions")}Content-Length: 100\r\n\r\n{` },
  { connections: 60, request: () => get("/api/events"), isDeaf: true },
  { connections: 20, request: (at) => get("/api/status", `Authorization: Bearer wrong-token-${at}\r\n`) },
  { connections: 20, request: (at) => get(`/api/transfers/story?${storyOf(at)}`) },
  { connections: 200, request: () => "", staysMs: 500 },
  { connections: 100, request: () => "GET / HTT" },
];

/** What consumers do to a delivered folder. */
const CONSUMERS: readonly ((folder: string) => Promise<void> | void)[] = [
  (folder) => {
    // A consumer that may not write the file may still put another one in its place.
    rmSync(join(folder, MANIFEST));
    writeFileSync(join(folder, MANIFEST), "{");
    truncateSync(join(folder, MANIFEST), SPARSE_BYTES);
  },
  (folder) => {
    rmSync(join(folder, MANIFEST));
    execFileSync("sh", ["-c", 'mkfifo "$1"', "sh", join(folder, MANIFEST)]);
  },
  (folder) => void mkdirSync(join(folder, "d/".repeat(LEVELS)), { recursive: true }),
  async (folder) => {
    for (let at = 0; at < ENTRIES; at++) {
      writeFileSync(join(folder, `${at}`), "");
      // Slowly: the disk is not what is measured.
      if (at % 20 === 0) await pause(10);
    }
  },
];

const [, , role, where = "", ...trackingIds] = process.argv;
if (role === "consumers") void consume(where);
else for (const stranger of STRANGERS) visitWith(stranger);

async function consume(inbox: string): Promise<void> {
  for (const seen = new Set<string>(); ; await pause(AGAIN_MS)) {
    for (const name of readdirSync(inbox)) {
      if (seen.has(name)) continue;
      const attack = CONSUMERS[seen.size % CONSUMERS.length];
      seen.add(name);
      await attack?.(join(inbox, name));
    }
  }
}

/** Of a folder that consumers have changed. */
function storyOf(at: number): string {
  return `mailbox=mailbox-1&trackingId=${trackingIds[at % trackingIds.length]}`;
}

function visitWith(stranger: Stranger): void {
  for (let at = 0; at < stranger.connections; at++) visit(stranger, at);
}

function visit(stranger: Stranger, at: number): void {
  const { request, isDeaf = false, staysMs, pauseMs = AGAIN_MS } = stranger;
  const socket = connect(Number(where), "127.0.0.1");
  if (isDeaf) socket.pause();
  else socket.resume();
  const text = request(at);
  if (text !== "") socket.write(text);
  const timer = staysMs === undefined ? undefined : setTimeout(() => socket.destroy(), staysMs);
  // The console closes it.
  socket.on("error", () => {});
  socket.once("close", () => {
    clearTimeout(timer);
    setTimeout(() => visit(stranger, at + 1), pauseMs);
  });
}

function head(method: string, path: string): string {
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n`;
}

function get(path: string, more = ""): string {
  return `${head("GET", path)}${more}\r\n`;
}
