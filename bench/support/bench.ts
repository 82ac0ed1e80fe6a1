/** The environment of all cases: folders, programs, number of rounds. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FOLDER as TLS_FOLDER } from "../../test/support/tls.ts";
import { findDelivered } from "./deliveries.ts";
import { type NginxOptions, type RunningNginx, startNginx } from "./nginx.ts";
import {
  CLIENT_ID,
  MAILBOX,
  PASSWORD,
  type RecordedService,
  recordService,
  type Wanted,
} from "./recording.ts";
import { type Command, type Spent, timeCommands } from "./timing.ts";
import type { Tools } from "./tools.ts";

export const CA_FILE = join(TLS_FOLDER, "ca.crt");

export interface Bench {
  /** Of the installed program. */
  readonly launcher: string;
  readonly tools: Tools;
  /** Of the case. */
  readonly folder: string;
  readonly rounds: number;
  /** 1, or less for a quick look. */
  readonly scale: number;
  readonly soakSeconds: number;
  /** Remove the files of each run at once, because large ones would fill the disk. */
  readonly removesRuns?: boolean;
  readonly stop: AbortSignal;
  log(text: string): void;
}

export interface InletSettings {
  readonly url: string;
  /** TLS with the certificates of the tests. */
  readonly secure?: boolean;
  readonly fetch?: "files" | "zip";
  readonly poll?: string;
  readonly queue?: string;
  readonly mailboxes?: number;
  readonly limits?: Readonly<Record<string, number | string>>;
}

/** Writes a configuration for a run in this folder as JSON, which is YAML too, and returns its path. */
export function writeConfig(folder: string, settings: InletSettings): string {
  const { url, fetch = "files", poll = "1h", queue = "embedded", mailboxes = 1, limits = {} } = settings;
  const trust = settings.secure ? { ca: CA_FILE } : {};
  const passwords = [{ sender: "*", password: PASSWORD }];
  const config = {
    service: { baseUrl: url, ...trust, clientId: CLIENT_ID, verification: { token: "measured" } },
    inbox: "inbox",
    work: "work",
    state: "state",
    queue,
    limits,
    mailboxes: Array.from({ length: mailboxes }, (_, at) => ({
      email: mailboxes === 1 ? MAILBOX : `mailbox-${at + 1}@example.com`,
      name: `mailbox-${at + 1}`,
      poll,
      fetch,
      layout: "{mailbox}/{trackingId}",
      passwords,
    })),
  };
  const path = join(folder, "inlet.yaml");
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}

/** Dispose it to stop nginx. */
export interface ServedRecording extends RecordedService, AsyncDisposable {
  readonly nginx: RunningNginx;
}

/** Serves the simulated service's answers from nginx. */
export async function serveRecording(
  bench: Bench,
  wanted: Wanted,
  options: Pick<NginxOptions, "rate" | "logsRequests"> = {},
): Promise<ServedRecording> {
  const service = await recordService(bench.folder, wanted);
  const folder = join(bench.folder, "nginx");
  const nginx = await startNginx(bench.tools.nginx, { ...options, site: service.site, folder });
  return { ...service, nginx, [Symbol.asyncDispose]: () => nginx[Symbol.asyncDispose]() };
}

/**
 * A folder for one run, after the files of other runs are synced. Small files stay until the end of the bench: on some file
 * systems creating files is slower after many were removed, and the next run would pay for it.
 */
export async function inFolder<Value>(
  { folder, removesRuns = false }: Bench,
  work: (folder: string) => Promise<Value>,
): Promise<Value> {
  const own = mkdtempSync(join(folder, "run-"));
  execFileSync("sync");
  try {
    return await work(own);
  } finally {
    if (removesRuns) rmSync(own, { recursive: true, force: true });
  }
}

/** `inlet once` with an empty work folder. Throws unless everything is delivered. `options`: for Node. */
export function runInlet(
  bench: Bench,
  settings: InletSettings,
  content: Wanted,
  options: readonly string[] = [],
): Promise<Spent> {
  return inFolder(bench, async (folder) => {
    const config = writeConfig(folder, settings);
    const command = {
      program: process.execPath,
      args: [...options, bench.launcher, "once", "--config", config],
    };
    const spent = await timeCommands(bench.tools, folder, [command], bench.stop);
    demandDelivered(content, folder);
    return spent;
  });
}

/** Throws unless everything is delivered. */
export function demandDelivered(content: Wanted, folder: string): void {
  const delivered = findDelivered(content, join(folder, "inbox/mailbox-1")).length;
  if (delivered !== content.transfers)
    throw new Error(`Inlet delivered ${delivered} of ${content.transfers}`);
}

/** Other programs, one after the other. `check` throws if their result is wrong. */
export function runOthers(
  bench: Bench,
  prepare: (folder: string) => readonly Command[],
  check: (folder: string) => void,
): Promise<Spent> {
  return inFolder(bench, async (folder) => {
    const spent = await timeCommands(bench.tools, folder, prepare(folder), bench.stop);
    check(folder);
    return spent;
  });
}
