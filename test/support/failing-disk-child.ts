/**
 * A process that runs a daemon for each line on stdin, a JSON of a `DaemonTask`, and answers each with a line on stdout, a
 * JSON of a `RunEnd`. It stays the same process, so that a tracer can attach to its single libuv thread for each run.
 */

import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describeFault, Fault } from "../../src/base/faults.ts";
import { onMachine, systemMachine } from "../../src/base/machine.ts";
import type { MailboxSettings, Settings } from "../../src/config/settings.ts";
import { type DaemonOutcome, runDaemon } from "../../src/daemon.ts";
import { mailboxSettings, settingsIn } from "./settings.ts";

export interface DaemonTask {
  readonly url: string;
  readonly clientId: string;
  readonly folder: string;
  readonly fetch: "files" | "zip";
  /** Runs with short waits until these are in the inbox. Without it the daemon polls once. */
  readonly until?: readonly string[];
  /** Only creates the folders. */
  readonly paused?: boolean;
  /** How far the daemon's clock is ahead, so that all waits are over. */
  readonly aheadMs?: number;
  /** Temporary names count up from one, so that strace can select their paths in advance. */
  readonly predictableNames?: boolean;
}

export interface RunEnd {
  readonly outcome?: DaemonOutcome;
  /** A thrown fault, described for people. */
  readonly fault?: string;
  /** The stack of any other error. */
  readonly error?: string;
  /** Files in the folder that were not closed. */
  readonly open: readonly string[];
}

const GRACE_MS = 5_000;
const LITTLE_PATIENCE = { retryMs: 10, diskMs: 10, lockedMs: 10, slowMs: 60_000 };

// Starts the libuv thread.
await access("/");
process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line) as DaemonTask))}\n`);
}

async function run(task: DaemonTask): Promise<RunEnd> {
  let names = 0;
  const counted = (bytes: number) => Buffer.from((++names).toString(16).padStart(bytes * 2, "0"), "hex");
  const chosen = task.predictableNames === true ? { randomBytes: counted } : {};
  const end = await onMachine({ ...systemMachine, ...chosen }, () =>
    task.until === undefined ? runOnce(task) : runUntil(task, task.until),
  );
  return { ...end, open: openFiles().filter((path) => path.startsWith(task.folder)) };
}

async function runOnce(task: DaemonTask): Promise<Omit<RunEnd, "open">> {
  const { aheadMs = 0 } = task;
  const settings = settingsOf(task, { pollMs: 60_000 });
  const clock = { now: () => Date.now() + aheadMs };
  const stop = new AbortController().signal;
  return endOf(runDaemon(settings, { mode: "once", stop, graceMs: GRACE_MS, onEvent: () => {}, clock }));
}

/**
 * Restarts a daemon that ends with a fault, as systemd does. Password attempts count as spent until their result is
 * recorded, so a disk that always fails needs a large budget.
 */
async function runUntil(task: DaemonTask, wanted: readonly string[]): Promise<Omit<RunEnd, "open">> {
  const settings = settingsOf(task, { pollMs: 20, passwordAttempts: 100 });
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
  { folder, fetch, paused = false, ...service }: DaemonTask,
  mailbox: Partial<MailboxSettings>,
): Settings {
  const layout = "{mailbox}/{trackingId}";
  return settingsIn(folder, [mailboxSettings(service, { fetch, paused, layout, ...mailbox })], {
    limits: {
      requests: 16,
      transfers: 1,
      filesPerTransfer: 1,
      minFreeBytes: 0,
      maxTransferBytes: 2 ** 40,
      maxFiles: 100,
    },
    handoff: { fileMode: 0o640, folderMode: 0o750, marker: "READY" },
  });
}

async function endOf(run: Promise<DaemonOutcome>): Promise<Omit<RunEnd, "open">> {
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
