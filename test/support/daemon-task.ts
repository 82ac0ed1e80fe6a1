/** What a daemon of a test has to do, as JSON for another process. This file needs no test runner. */
import { inFile } from "../../src/config/credentials.ts";
import type { MailboxSettings, RedisQueueSettings, Settings } from "../../src/config/settings.ts";
import { runDaemon } from "../../src/daemon.ts";
import { checkWith, type HandoffTask, makeHandoff } from "./handoff.ts";
import { byWebhook } from "./notify.ts";
import { mailboxSettings, pageSettings, plainSecret, redisQueue, settingsIn } from "./settings.ts";

/** Of every daemon. */
interface CommonTask {
  readonly url: string;
  readonly clientId: string;
  /** Holds inbox and state. */
  readonly folder: string;
  readonly handoff?: HandoffTask;
  /** The URL of the queue; missing: the embedded engine. */
  readonly redis?: string | undefined;
}

/** A daemon that polls once, and works sequentially, so that its durable steps can be counted. */
export interface CrashTask extends CommonTask {
  readonly fetch: MailboxSettings["fetch"];
  readonly fileMode?: number;
  readonly since?: "now";
  /** A script for the check, and its arguments. */
  readonly check?: readonly [string, ...string[]];
  readonly user?: number;
  /** The name of the durable step after which it kills itself. */
  readonly crashAt?: string;
  /** Before that it runs this command, which cuts the disk off. */
  readonly unplug?: readonly string[];
}

/** A daemon that runs until SIGTERM, with short waits, and logs JSON lines. */
export interface ChildTask extends CommonTask {
  /** Keys of its mailbox. */
  readonly mailbox?: Partial<MailboxSettings>;
  /** In place of the usual password. */
  readonly password?: { readonly file: string };
  readonly lockMs?: number;
  /** Keys of the queue's settings. */
  readonly queue?: Partial<Pick<RedisQueueSettings, "sentinels" | "sentinelName" | "cluster" | "prefix">>;
  readonly sentinelPassword?: string;
  /** With a console. */
  readonly http?: true;
  /** Notifications: to this address. */
  readonly notify?: string;
}

/** Short, so that another process soon takes the job of a killed one. */
const LOCK_MS = 500;

/** The same task takes the same steps in every process. */
export async function runCrashDaemon(task: CrashTask): Promise<void> {
  const stop = new AbortController().signal;
  await runDaemon(settingsOfCrash(task), { mode: "once", stop, graceMs: 1_000, onEvent: () => {} });
}

function settingsOfCrash(task: CrashTask): Settings {
  const mailbox = mailboxSettings(task, {
    pollMs: 60_000,
    fetch: task.fetch,
    since: task.since,
    layout: "{mailbox}/{trackingId}",
    check: task.check && checkWith(task.check[0], task.check.slice(1)),
  });
  return settingsIn(task.folder, [mailbox], {
    limits: {
      requests: 16,
      transfers: 1,
      filesPerTransfer: 1,
      minFreeBytes: 0,
      maxTransferBytes: 2 ** 40,
      maxFiles: 100,
    },
    queue: task.redis === undefined ? "embedded" : redisQueue(task.redis, LOCK_MS),
    handoff: makeHandoff(task.handoff ?? {}, task.fileMode, "READY"),
  });
}

export function settingsOfChild(task: ChildTask): Settings {
  return settingsIn(task.folder, [mailboxSettings(task, mailboxKeys(task))], {
    ...(task.handoff === undefined ? {} : { handoff: makeHandoff(task.handoff) }),
    ...(task.http === true ? { http: pageSettings() } : {}),
    ...(task.notify === undefined ? {} : { notify: [byWebhook(task.notify, { gatherMs: 50, everyMs: 50 })] }),
    ...(task.redis === undefined ? {} : { queue: queueOf(task, task.redis) }),
  });
}

function mailboxKeys({ mailbox, password }: ChildTask): Partial<MailboxSettings> {
  if (password === undefined) return mailbox ?? {};
  const source = inFile(password.file);
  return { ...mailbox, passwords: [{ sender: "*", trackingId: undefined, password: source }] };
}

function queueOf({ lockMs, queue, sentinelPassword }: ChildTask, url: string): RedisQueueSettings {
  const secret = sentinelPassword === undefined ? {} : { sentinelPassword: plainSecret(sentinelPassword) };
  return { ...redisQueue(url, lockMs), ...queue, ...secret };
}
