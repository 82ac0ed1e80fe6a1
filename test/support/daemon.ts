/** A daemon in this process with a temporary inbox, which a consumer observes. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import type { DeadlineLimits } from "../../src/base/deadline.ts";
import { detailOf } from "../../src/base/faults.ts";
import type { MailboxSettings, Settings } from "../../src/config/settings.ts";
import { type DaemonOptions, type DaemonOutcome, runDaemon } from "../../src/daemon.ts";
import type { HandoffPatience } from "../../src/handoff/port.ts";
import { listenTo } from "../../src/model/events.ts";
import type { TransferRecord } from "../../src/model/record.ts";
import type { NotifyPatience } from "../../src/notify/channel.ts";
import { HANDOFF_PATIENCE } from "./handoff.ts";
import { type InboxObserver, observeInbox } from "./inbox-observer.ts";
import { makeFolder } from "./program.ts";
import { startRedis } from "./redis.ts";
import { PASSWORD, redisQueue, settingsIn } from "./settings.ts";

// In their own file, for processes without a test runner.
export { readTree, withoutTimes } from "./tree.ts";

export interface TestDaemon {
  readonly settings: Settings;
  readonly observer: InboxObserver;
  /** Every change of state, in order. */
  readonly changes: TransferRecord[];
  /** Other events, in words. */
  readonly reports: string[];
  /** Events of the hand-off, in words. */
  readonly handoffs: string[];
  /** Resolves to the address of its console. */
  readonly page: Promise<string>;
  readonly outcome: Promise<DaemonOutcome>;
  /** The last state of a transfer. */
  stateOf(trackingId: string): string | undefined;
  /** Applies other settings, as after a change of the configuration. */
  reload(next: Settings): Promise<void>;
  stop(): Promise<void>;
}

/** Set by the vitest project that runs some flows a second time, on Redis. */
export const isOnRedis = process.env["INLET_TEST_QUEUE"] === "redis";

/** Longer than a busy machine pauses a process: after that, another run of the job would be right. */
const LOCK_MS = 120_000;

export async function daemonSettings(
  mailboxes: readonly MailboxSettings[],
  settings: Partial<Settings> = {},
): Promise<Settings> {
  const usual = isOnRedis ? redisQueue((await startRedis()).url, LOCK_MS) : "embedded";
  const queue = settings.queue ?? usual;
  return settingsIn(await makeFolder(), mailboxes, { ...settings, queue });
}

interface TestOptions {
  readonly clock?: Clock;
  readonly mode?: "run" | "once";
  readonly graceMs?: number;
  /** After a first failure. */
  readonly retryMs?: number;
  /** For a locked transfer without `Retry-After`. */
  readonly lockedMs?: number;
  /** How long a download may be slow while others wait. */
  readonly slowMs?: number;
  readonly handoff?: Partial<HandoffPatience>;
  readonly notify?: Partial<NotifyPatience>;
  readonly poll?: DeadlineLimits;
}

/** Stopped at the end of the test, which fails if the consumer saw a partial delivery, or a secret leaked. */
export function startDaemon(
  settings: Settings,
  {
    mode = "run",
    graceMs = 5_000,
    retryMs = 50,
    lockedMs = 200,
    slowMs = 60_000,
    handoff = {},
    notify = {},
    poll,
    ...rest
  }: TestOptions = {},
): TestDaemon {
  const stop = new AbortController();
  const changes: TransferRecord[] = [];
  const reports: string[] = [];
  const handoffs: string[] = [];
  const page = Promise.withResolvers<string>();
  let lastExposed: string | undefined;
  const onEvent = listenTo({
    "transfer-changed": ({ record }) => void changes.push(record),
    "transfer-discovered": ({ record }) => void changes.push(record),
    "poll-failed": ({ mailbox, fault, isFirst }) =>
      void (isFirst && reports.push(`${mailbox}: ${fault.code}`)),
    "poll-recovered": ({ mailbox }) => void reports.push(`${mailbox}: recovered`),
    "entries-rejected": ({ mailbox, entries, reasons }) =>
      void reports.push(
        `${mailbox}: ${entries} rejected: ${reasons.map(({ message }) => message).join("; ")}`,
      ),
    "transfer-expiring": ({ record }) => void reports.push(`${record.trackingId}: expires soon`),
    "client-id-created": ({ origin }) => void reports.push(`${origin}: client id made`),
    "pauses-changed": ({ mailboxes }) => {
      for (const { name, pause } of mailboxes) if (pause !== undefined) reports.push(`paused: ${name}`);
    },
    "disk-failed": () => void reports.push("disk full"),
    "disk-recovered": () => void reports.push("room again"),
    "transfer-stuck": ({ record, fault }) => void reports.push(`${record.trackingId}: stuck: ${fault.code}`),
    "queue-lost": () => void reports.push("queue lost"),
    "queue-back": () => void reports.push("queue back"),
    "queue-evicts": ({ policy }) => void reports.push(`queue forgets: ${policy}`),
    "transfer-lost": ({ record }) => void reports.push(`${record.trackingId}: lost`),
    "console-opened": ({ address }) => page.resolve(address),
    "console-failed": ({ address, reason }) => void reports.push(`${address}: ${reason}`),
    "record-damaged": ({ path }) => void reports.push(`${path}: damaged`),
    "handoffs-stuck": ({ fault }) => void reports.push(`hand-offs: ${fault.code}`),
    "handoff-succeeded": ({ delivered, step }) => void handoffs.push(`${delivered.trackingId}: ${step} done`),
    "handoff-failed": ({ delivered, step, fault, willRetry }) => {
      const outcome = willRetry ? "failed" : "given up";
      handoffs.push(`${delivered.trackingId}: ${step} ${outcome}: ${fault.message} ${fault.output ?? ""}`);
    },
    "folder-picked-up": ({ delivered, how }) => void handoffs.push(`${delivered.trackingId}: ${how}`),
    "pick-up-overdue": ({ delivered }) => void handoffs.push(`${delivered.trackingId}: overdue`),
    "folder-left": ({ delivered }) => void handoffs.push(`${delivered.trackingId}: left in place`),
    "notify-succeeded": ({ kind }) => void reports.push(`notified by ${kind}`),
    "notify-failed": ({ kind, notices, fault, waitMs }) => {
      const about = waitMs === undefined ? "" : `${notices} notices: `;
      reports.push(`${waitMs === undefined ? "" : `${kind}: `}${fault.code}: ${about}${fault.message}`);
    },
    "trust-looked-at": ({ fault }) => {
      const exposed = fault && `${fault.code}: ${detailOf(fault)}`;
      if (exposed !== lastExposed) reports.push(exposed ?? "not exposed");
      lastExposed = exposed;
    },
    "recovery-failed": ({ fault }) => void reports.push(`left over: ${fault.message}`),
    "folder-removed": ({ delivered, after }) =>
      void handoffs.push(`${delivered.trackingId}: removed after ${after}`),
  });
  const observer = observeInbox(settings.inbox);
  const patience = {
    retryMs,
    diskMs: 50,
    lockedMs,
    slowMs,
    handoff: { ...HANDOFF_PATIENCE, ...handoff },
    notify: { retryMs: 50, blipMs: 0, ...notify },
    poll,
  };
  const applying = Promise.withResolvers<(next: Settings) => Promise<void>>();
  const follow: NonNullable<DaemonOptions["follow"]> = async (apply) => {
    applying.resolve(apply);
    return { close: async () => {} };
  };
  const options = { mode, stop: stop.signal, graceMs, onEvent, patience, follow, ...rest };
  const outcome = runDaemon(settings, options);
  const end = async () => {
    stop.abort();
    await outcome;
    observer.close();
  };
  onTestFinished(async () => {
    await end();
    expect(observer.problems).toEqual([]);
    expect(
      await findSecrets(settings, [
        ...reports,
        ...handoffs,
        ...changes.map((record) => JSON.stringify(record)),
      ]),
    ).toEqual([]);
  });
  return {
    settings,
    observer,
    changes,
    reports,
    handoffs,
    page: page.promise,
    outcome,
    reload: async (next) => (await applying.promise)(next),
    stop: end,
    stateOf: (trackingId) => changes.findLast((record) => record.trackingId === trackingId)?.state,
  };
}

/** Runs it once to its end. */
export async function runOnce(settings: Settings, options: TestOptions = {}): Promise<TestDaemon> {
  const daemon = startDaemon(settings, { ...options, mode: "once" });
  await daemon.outcome;
  return daemon;
}

/** Files in the inbox, and reports, that hold a secret. */
async function findSecrets(settings: Settings, reports: readonly string[]): Promise<string[]> {
  const { signal } = new AbortController();
  const sources = settings.mailboxes.flatMap(({ passwords, service }) => [
    ...passwords.flatMap(({ password }) => ("read" in password ? [password] : [])),
    ...(service.clientId === undefined ? [] : [service.clientId]),
  ]);
  const { webhook } = settings.handoff;
  if (webhook?.secret !== undefined) sources.push(webhook.secret);
  const kept = await readdir(join(settings.state, "tokens")).catch(() => []);
  const tokens = await Promise.all(
    kept.map(
      async (name) =>
        JSON.parse(await readFile(join(settings.state, "tokens", name), "utf8")).token as string,
    ),
  );
  const texts = await Promise.all(sources.map(async (source) => (await source.read(signal)).reveal()));
  const secrets = [...texts, ...tokens, PASSWORD].flatMap((text) => [text, encodeURIComponent(text)]);
  const entries = await readdir(settings.inbox, { recursive: true, withFileTypes: true }).catch(() => []);
  const isLeaking = (text: string | Buffer) => secrets.some((secret) => text.includes(secret));
  const found = reports.some(isLeaking) ? ["a report"] : [];
  for (const entry of entries.filter((it) => it.isFile())) {
    const path = join(entry.parentPath, entry.name);
    // Another daemon of the same inbox may remove it meanwhile.
    const content = await readFile(path).catch(() => "");
    if (isLeaking(path) || isLeaking(content)) found.push(path);
  }
  return found;
}
