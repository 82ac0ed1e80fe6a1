/**
 * A daemon in its own process that runs until SIGTERM, with short waits, and logs JSON lines to stdout.
 * Argument: a JSON of { url, clientId, folder }, with { mailbox } for keys of its mailbox, for a fleet also { redis, lockMs, transfers }, for a hand-off { handoff }.
 */
import { logEvents } from "../../src/cli/event-log.ts";
import { runDaemon } from "../../src/daemon.ts";
import { createLog } from "../../src/observe/log.ts";
import { HANDOFF_PATIENCE, makeHandoff } from "./handoff.ts";
import { mailboxSettings, redisQueue, settingsIn } from "./settings.ts";

const task = JSON.parse(process.argv[2] ?? "{}");
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
const handoff = task.handoff === undefined ? {} : { handoff: makeHandoff(task.handoff) };
const settings = settingsIn(task.folder, [mailboxSettings(task, task.mailbox)], handoff);
await runDaemon(
  task.redis === undefined ? settings : { ...settings, queue: redisQueue(task.redis, task.lockMs) },
  {
    mode: "run",
    stop: stop.signal,
    graceMs: 5_000,
    onEvent: logEvents(createLog(process.stdout, "debug")),
    patience: { retryMs: 50, diskMs: 50, lockedMs: 200, slowMs: 60_000, handoff: HANDOFF_PATIENCE },
  },
);
