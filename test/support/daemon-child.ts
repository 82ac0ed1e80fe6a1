/**
 * A daemon in its own process that runs until SIGTERM, with short waits, and logs JSON lines to stdout.
 * Argument: a JSON of { url, clientId, folder }, with { mailbox } for keys of its mailbox, for a fleet also { redis, lockMs, transfers }, for a hand-off { handoff }, for a console { http: true }, for notifications { notify: URL }.
 */
import { logEvents } from "../../src/cli/event-log.ts";
import { runDaemon } from "../../src/daemon.ts";
import { type ChannelSettings, NOTICE_KINDS } from "../../src/model/notify.ts";
import { createLog } from "../../src/observe/log.ts";
import { HANDOFF_PATIENCE, makeHandoff } from "./handoff.ts";
import { mailboxSettings, pageSettings, plainSecret, redisQueue, settingsIn } from "./settings.ts";

const task = JSON.parse(process.argv[2] ?? "{}");
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
const handoff = task.handoff === undefined ? {} : { handoff: makeHandoff(task.handoff) };
const settings = settingsIn(task.folder, [mailboxSettings(task, task.mailbox)], {
  ...handoff,
  ...(task.http === true ? { http: pageSettings() } : {}),
  ...(task.notify === undefined ? {} : { notify: [notifyOfDisks(task.notify)] }),
});
await runDaemon(
  task.redis === undefined ? settings : { ...settings, queue: redisQueue(task.redis, task.lockMs) },
  {
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
    },
  },
);

function notifyOfDisks(url: string): ChannelSettings {
  const channel = {
    kind: "webhook",
    url: new URL(url),
    secret: plainSecret("key"),
    timeoutMs: 5_000,
  } as const;
  const times = { mailboxes: undefined, quiet: undefined, gatherMs: 50, everyMs: 50 };
  return { on: NOTICE_KINDS, urgent: ["disk"], ...times, channel };
}
