/** The daemon of crash tests: it polls once, and works sequentially, so that its durable steps can be counted. */

import type { MailboxSettings } from "../../src/config/settings.ts";
import { type DaemonOutcome, runDaemon } from "../../src/daemon.ts";
import type { Emit } from "../../src/model/events.ts";
import { checkWith, type HandoffTask, makeHandoff } from "./handoff.ts";
import { mailboxSettings, redisQueue, settingsIn } from "./settings.ts";

export interface CrashTask {
  readonly url: string;
  readonly clientId: string;
  /** Holds inbox and state. */
  readonly folder: string;
  readonly fetch: MailboxSettings["fetch"];
  /** The mailbox's own inbox. */
  readonly inbox?: string | undefined;
  readonly fileMode?: number;
  /** The number of the group of delivered files. */
  readonly group?: string;
  readonly since?: "now";
  /** Only creates the folders. */
  readonly paused?: boolean;
  readonly handoff?: HandoffTask;
  /** A script for the check, and its arguments. */
  readonly check?: readonly [string, ...string[]];
  /** The URL of the queue; missing: the embedded engine. */
  readonly redis?: string | undefined;
}

/** Short, so that another process soon takes the job of a killed one. */
const LOCK_MS = 500;

/** The same task takes the same steps in every process. */
export async function runCrashDaemon(task: CrashTask, onEvent: Emit = () => {}): Promise<DaemonOutcome> {
  const mailbox = mailboxSettings(task, {
    pollMs: 60_000,
    fetch: task.fetch,
    inbox: task.inbox,
    since: task.since,
    paused: task.paused ?? false,
    layout: task.handoff?.deliver === "files" ? "{mailbox}" : "{mailbox}/{trackingId}",
    check: task.check && checkWith(task.check[0], task.check.slice(1)),
  });
  const settings = settingsIn(task.folder, [mailbox], {
    limits: {
      requests: 16,
      transfers: 1,
      filesPerTransfer: 1,
      minFreeBytes: 0,
      maxTransferBytes: 2 ** 40,
      maxFiles: 100,
    },
    queue: task.redis === undefined ? "embedded" : redisQueue(task.redis, LOCK_MS),
    handoff: { ...makeHandoff(task.handoff ?? {}, task.fileMode, "READY"), group: task.group },
  });
  return runDaemon(settings, {
    mode: "once",
    stop: new AbortController().signal,
    graceMs: 1_000,
    onEvent,
  });
}
