/**
 * A daemon in a process of its own that lives once for each line on stdin, and answers each with a line on stdout.
 * It stays the same process, so that a tracer can take hold of its one thread for files before a life and let go
 * after it. A line is a JSON of a `Life`, an answer one of an `End`.
 */
import crypto from "node:crypto";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { access } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describeFault, Fault } from "../../src/base/faults.ts";
import type { MailboxSettings, Settings } from "../../src/config/settings.ts";
import { type DaemonOutcome, runDaemon } from "../../src/daemon.ts";
import { mailboxSettings, settingsIn } from "./settings.ts";

export interface Life {
  readonly url: string;
  readonly clientId: string;
  readonly folder: string;
  readonly fetch: "files" | "zip";
  /** It runs on, with little patience, until these are in the inbox. Without, it polls once. */
  readonly until?: readonly string[];
  /** Nothing is received; the folders are made. */
  readonly paused?: boolean;
  /** How far the daemon's clock is ahead: what waits has waited long enough then. */
  readonly aheadMs?: number;
  /** Temporary names count up from one: whoever traces by path knows them before they are there. */
  readonly foreseeable?: boolean;
}

export interface End {
  /** What it returned, where it did. */
  readonly outcome?: DaemonOutcome;
  /** What it threw, where it did, as a person reads it. */
  readonly fault?: string;
  /** The stack of what it threw and nobody foresaw. */
  readonly error?: string;
  /** Files below the folder that nobody closed. */
  readonly open: readonly string[];
}

const GRACE_MS = 5_000;
const LITTLE_PATIENCE = { retryMs: 10, diskMs: 10, lockedMs: 10, slowMs: 60_000 };
const { randomBytes } = crypto;

// The thread for files is there from its first use on.
await access("/");
process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await live(JSON.parse(line) as Life))}\n`);
}

async function live(life: Life): Promise<End> {
  let names = 0;
  const counted = (bytes: number) => Buffer.from((++names).toString(16).padStart(bytes * 2, "0"), "hex");
  Object.assign(crypto, { randomBytes: life.foreseeable === true ? counted : randomBytes });
  syncBuiltinESMExports();
  const end = await (life.until === undefined ? runOnce(life) : runUntil(life, life.until));
  return { ...end, open: openFiles().filter((path) => path.startsWith(life.folder)) };
}

async function runOnce(life: Life): Promise<Omit<End, "open">> {
  const { aheadMs = 0 } = life;
  const settings = settingsOf(life, { pollMs: 60_000 });
  const clock = { now: () => Date.now() + aheadMs };
  const stop = new AbortController().signal;
  return endOf(runDaemon(settings, { mode: "once", stop, graceMs: GRACE_MS, onEvent: () => {}, clock }));
}

/**
 * A daemon that ends with a fault is started again, as systemd does. An attempt with a password counts as spent until
 * its end is written down, and a disk that fails all the time must not spend them all.
 */
async function runUntil(life: Life, wanted: readonly string[]): Promise<Omit<End, "open">> {
  const settings = settingsOf(life, { pollMs: 20, passwordAttempts: 100 });
  const stop = new AbortController();
  const options = { stop: stop.signal, graceMs: GRACE_MS, onEvent: () => {}, patience: LITTLE_PATIENCE };
  const look = setInterval(() => {
    if (wanted.every((path) => existsSync(join(settings.inbox, path)))) stop.abort();
  }, 10);
  for (;;) {
    const end = await endOf(runDaemon(settings, { mode: "run", ...options }));
    if (end.fault !== undefined && !stop.signal.aborted) continue;
    clearInterval(look);
    return end;
  }
}

function settingsOf(
  { folder, fetch, paused = false, ...service }: Life,
  mailbox: Partial<MailboxSettings>,
): Settings {
  const layout = "{mailbox}/{trackingId}";
  return settingsIn(folder, [mailboxSettings(service, { fetch, paused, layout, ...mailbox })], {
    limits: { transfers: 1, filesPerTransfer: 1, minFreeBytes: 0, maxTransferBytes: 2 ** 40, maxFiles: 100 },
    handoff: { fileMode: 0o640, folderMode: 0o750, marker: "READY" },
  });
}

async function endOf(run: Promise<DaemonOutcome>): Promise<Omit<End, "open">> {
  try {
    return { outcome: await run };
  } catch (error) {
    if (error instanceof Fault && error.code !== "UNEXPECTED") return { fault: describeFault(error) };
    return { error: error instanceof Error ? String(error.stack) : String(error) };
  }
}

function openFiles(): string[] {
  return readdirSync("/proc/self/fd").map((number) => {
    try {
      return readlinkSync(`/proc/self/fd/${number}`);
    } catch {
      return "";
    }
  });
}
