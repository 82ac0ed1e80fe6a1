/**
 * A daemon in its own process that runs until SIGTERM, with short waits, and logs JSON lines to stdout.
 * Argument: a `ChildTask` as JSON.
 */
import { logEvents } from "../../src/cli/event-log.ts";
import { openPasswordCommand, openSecret } from "../../src/config/secrets.ts";
import type { MailboxSettings, RedisQueueSettings } from "../../src/config/settings.ts";
import { runDaemon } from "../../src/daemon.ts";
import { type ChannelSettings, NOTICE_KINDS } from "../../src/model/notify.ts";
import { createLog } from "../../src/observe/log.ts";
import { checkWith, HANDOFF_PATIENCE, type HandoffTask, makeHandoff } from "./handoff.ts";
import {
  mailboxSettings,
  pageSettings,
  plainSecret,
  receiverAt,
  redisQueue,
  settingsIn,
} from "./settings.ts";

export interface ChildTask {
  readonly url: string;
  readonly clientId: string;
  readonly folder: string;
  /** Keys of its mailbox. */
  readonly mailbox?: Partial<MailboxSettings>;
  /** Of its requests to the service. */
  readonly timeoutMs?: number;
  /** A shell script, as the check of its mailbox. */
  readonly check?: string;
  /** In place of the usual password: a file, or a command that prints it. */
  readonly password?: { readonly file: string } | { readonly command: readonly [string, ...string[]] };
  /** The address of Redis; else the embedded engine. */
  readonly redis?: string;
  readonly lockMs?: number;
  /** Keys of the queue's settings. */
  readonly queue?: Partial<Pick<RedisQueueSettings, "sentinels" | "sentinelName" | "cluster" | "prefix">>;
  readonly sentinelPassword?: string;
  readonly handoff?: HandoffTask;
  /** With a console. */
  readonly http?: true;
  /** Notifications: to this address. */
  readonly notify?: string | undefined;
  /** Notifications by mail, to these recipients. */
  readonly mail?: {
    readonly port: number;
    readonly to: readonly string[];
    readonly user: string;
    readonly password: string;
    readonly ca: string;
  };
}

const task: ChildTask = JSON.parse(process.argv[2] ?? "{}");
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
const channels = channelsOf(task);
const mailbox = mailboxSettings(task, mailboxKeys(task));
const { timeoutMs = mailbox.service.timeoutMs } = task;
const settings = settingsIn(task.folder, [{ ...mailbox, service: { ...mailbox.service, timeoutMs } }], {
  ...(task.handoff === undefined ? {} : { handoff: makeHandoff(task.handoff) }),
  ...(task.http === true ? { http: pageSettings() } : {}),
  ...(channels.length === 0 ? {} : { notify: channels.map(withShortTimes) }),
});
await runDaemon(task.redis === undefined ? settings : { ...settings, queue: queueOf(task, task.redis) }, {
  mode: "run",
  stop: stop.signal,
  graceMs: 5_000,
  onEvent: logEvents(createLog(process.stdout, "debug")),
  patience: {
    retryMs: 50,
    diskMs: 50,
    lockedMs: 200,
    slowMs: 60_000,
    lookMs: 50,
    handoff: HANDOFF_PATIENCE,
    notify: { retryMs: 50, blipMs: 0 },
  },
});
// The client of a cluster may leave a connection open after a node did not answer. The product ends its process too.
if (task.queue?.cluster !== undefined) process.exit();

function mailboxKeys({ mailbox, check, password }: ChildTask): Partial<MailboxSettings> {
  const checks = check === undefined ? {} : { check: checkWith(check) };
  if (password === undefined) return { ...mailbox, ...checks };
  const source =
    "file" in password
      ? openSecret({ kind: "file", path: password.file }, process.env)
      : openPasswordCommand(password.command, process.env);
  return { ...mailbox, ...checks, passwords: [{ sender: "*", trackingId: undefined, password: source }] };
}

function queueOf({ lockMs, queue, sentinelPassword }: ChildTask, url: string): RedisQueueSettings {
  const secret = sentinelPassword === undefined ? {} : { sentinelPassword: plainSecret(sentinelPassword) };
  return { ...redisQueue(url, lockMs), ...queue, ...secret };
}

function channelsOf({ notify, mail }: ChildTask): ChannelSettings["channel"][] {
  const timeoutMs = 5_000;
  const channels: ChannelSettings["channel"][] = [];
  if (notify !== undefined) {
    channels.push({ kind: "webhook", ...receiverAt(notify, "key", { timeoutMs }) });
  }
  if (mail !== undefined) {
    const { user, password } = mail;
    const login = { user: plainSecret(user), password: plainSecret(password) };
    const server = { host: "127.0.0.1", from: "inlet@example.com", tls: "required" } as const;
    channels.push({ kind: "mail", ...mail, ...server, ...login, timeoutMs });
  }
  return channels;
}

function withShortTimes(channel: ChannelSettings["channel"]): ChannelSettings {
  const times = { mailboxes: undefined, quiet: undefined, gatherMs: 50, everyMs: 50 };
  return { on: NOTICE_KINDS, urgent: ["disk"], ...times, channel };
}
