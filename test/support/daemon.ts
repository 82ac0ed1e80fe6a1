/** A daemon in this process, on a simulated service and a temporary folder, watched from the consumer's side. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { DeadlineLimits } from "../../src/base/deadline.ts";
import type { MailboxSettings, Settings } from "../../src/config/settings.ts";
import { type DaemonOptions, type DaemonOutcome, runDaemon } from "../../src/daemon.ts";
import type { HandoffPatience } from "../../src/handoff/port.ts";
import { listenTo } from "../../src/model/events.ts";
import type { TransferRecord } from "../../src/model/record.ts";
import { type ConsumersEye, openConsumersEye } from "./consumers-eye.ts";
import { queueOfTest } from "./engine.ts";
import { HANDOFF_PATIENCE } from "./handoff.ts";
import { makeFolder } from "./program.ts";
import { PASSWORD, settingsIn } from "./settings.ts";

// They stand apart for processes that have no test runner.
export { readTree, withoutTimes } from "./tree.ts";

export interface TestDaemon {
  readonly settings: Settings;
  readonly eye: ConsumersEye;
  /** Every change of state, in order. */
  readonly changes: TransferRecord[];
  readonly told: string[];
  /** What followed deliveries, in order. */
  readonly handed: string[];
  /** The address of its status page, once it is open. */
  readonly page: Promise<string>;
  readonly outcome: Promise<DaemonOutcome>;
  /** The last state of a transfer. */
  stateOf(trackingId: string): string | undefined;
  stop(): Promise<void>;
}

export async function daemonSettings(
  mailboxes: readonly MailboxSettings[],
  settings: Partial<Settings> = {},
): Promise<Settings> {
  const queue = settings.queue ?? (await queueOfTest());
  return settingsIn(await makeFolder(), mailboxes, { ...settings, queue });
}

interface TestOptions {
  readonly mode?: "run" | "once";
  readonly graceMs?: number;
  /** After a first failure. */
  readonly retryMs?: number;
  /** For a locked transfer, where the service does not say. */
  readonly lockedMs?: number;
  /** For so long a download may be slow where others wait. */
  readonly slowMs?: number;
  readonly handoff?: Partial<HandoffPatience>;
  readonly poll?: DeadlineLimits;
  readonly follow?: NonNullable<DaemonOptions["follow"]>;
}

/** Starts it; it is stopped when the test is over, and then nobody must have seen anything partial. */
export function startDaemon(
  settings: Settings,
  {
    mode = "run",
    graceMs = 5_000,
    retryMs = 50,
    lockedMs = 200,
    slowMs = 60_000,
    handoff = {},
    poll,
    ...rest
  }: TestOptions = {},
): TestDaemon {
  const stop = new AbortController();
  const changes: TransferRecord[] = [];
  const told: string[] = [];
  const handed: string[] = [];
  const page = Promise.withResolvers<string>();
  const onEvent = listenTo({
    "transfer-changed": ({ record }) => void changes.push(record),
    "transfer-discovered": ({ record }) => void changes.push(record),
    "poll-failed": ({ mailbox, fault, isFirst }) => void (isFirst && told.push(`${mailbox}: ${fault.code}`)),
    "poll-recovered": ({ mailbox }) => void told.push(`${mailbox}: recovered`),
    "entries-rejected": ({ mailbox, entries, reasons }) =>
      void told.push(`${mailbox}: ${entries} rejected: ${reasons.map(({ message }) => message).join("; ")}`),
    "transfer-expiring": ({ record }) => void told.push(`${record.trackingId}: expires soon`),
    "client-id-created": ({ origin }) => void told.push(`${origin}: client id made`),
    "disk-full": () => void told.push("disk full"),
    "disk-has-room": () => void told.push("room again"),
    "transfer-stuck": ({ record, fault }) => void told.push(`${record.trackingId}: stuck: ${fault.code}`),
    "queue-lost": () => void told.push("queue lost"),
    "queue-back": () => void told.push("queue back"),
    "queue-evicts": ({ policy }) => void told.push(`queue forgets: ${policy}`),
    "transfer-lost": ({ record }) => void told.push(`${record.trackingId}: lost`),
    "console-opened": ({ address }) => page.resolve(address),
    "console-failed": ({ address, reason }) => void told.push(`${address}: ${reason}`),
    "record-damaged": ({ path }) => void told.push(`${path}: damaged`),
    "handoffs-stuck": ({ fault }) => void told.push(`hand-offs: ${fault.code}`),
    "handoff-succeeded": ({ delivered, step }) => void handed.push(`${delivered.trackingId}: ${step} done`),
    "handoff-failed": ({ delivered, step, fault, willRetry, output }) => {
      const outcome = willRetry ? "failed" : "given up";
      handed.push(`${delivered.trackingId}: ${step} ${outcome}: ${fault.message} ${output}`);
    },
    "folder-picked-up": ({ delivered, how }) => void handed.push(`${delivered.trackingId}: ${how}`),
    "pick-up-overdue": ({ delivered }) => void handed.push(`${delivered.trackingId}: overdue`),
    "folder-left": ({ delivered }) => void handed.push(`${delivered.trackingId}: left in place`),
    "work-exposed": ({ folder }) => void told.push(`exposed: ${folder}`),
    "recovery-failed": ({ fault }) => void told.push(`left over: ${fault.message}`),
    "folder-removed": ({ delivered, after }) =>
      void handed.push(`${delivered.trackingId}: removed after ${after}`),
  });
  const eye = openConsumersEye(settings.inbox);
  const patience = {
    retryMs,
    diskMs: 50,
    lockedMs,
    slowMs,
    handoff: { ...HANDOFF_PATIENCE, ...handoff },
    poll,
  };
  const outcome = runDaemon(settings, { mode, stop: stop.signal, graceMs, onEvent, patience, ...rest });
  const end = async () => {
    stop.abort();
    await outcome;
    await eye.close();
  };
  onTestFinished(async () => {
    await end();
    expect(eye.complaints).toEqual([]);
    expect(
      await findSecrets(settings, [...told, ...handed, ...changes.map((record) => JSON.stringify(record))]),
    ).toEqual([]);
  });
  return {
    settings,
    eye,
    changes,
    told,
    handed,
    page: page.promise,
    outcome,
    stop: end,
    stateOf: (trackingId) => changes.findLast((record) => record.trackingId === trackingId)?.state,
  };
}

/** Runs it once, to the end. */
export async function runOnce(settings: Settings, options: TestOptions = {}): Promise<TestDaemon> {
  const daemon = startDaemon(settings, { ...options, mode: "once" });
  await daemon.outcome;
  return daemon;
}

/** Where a secret that was in play stands in what was written or told: nowhere but where secrets are kept. */
async function findSecrets(settings: Settings, told: readonly string[]): Promise<string[]> {
  const { signal } = new AbortController();
  const sources = settings.mailboxes.flatMap(({ passwords, service }) => [
    ...passwords.map((rule) => rule.password),
    ...(service.clientId === undefined ? [] : [service.clientId]),
  ]);
  if (settings.handoff.webhook !== undefined) sources.push(settings.handoff.webhook.secret);
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
  const places: [string, string][] = told.map((text) => ["told", text]);
  for (const entry of entries.filter((it) => it.isFile())) {
    const path = join(entry.parentPath, entry.name);
    // Another daemon of the same inbox may take it away meanwhile.
    places.push([path, `${path}\n${await readFile(path, "utf8").catch(() => "")}`]);
  }
  return places.filter(([, text]) => secrets.some((secret) => text.includes(secret))).map(([place]) => place);
}
