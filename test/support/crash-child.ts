/**
 * A daemon in a process of its own that polls once, and stops itself with SIGKILL at one of its durable steps.
 * Argument: a JSON of { url, clientId, folder, fetch, crashAt }, and what it is to run as: { user, fileMode }, where
 * given. Prints how many steps it passed.
 */
import { subscribe } from "node:diagnostics_channel";
import { runDaemon } from "../../src/daemon.ts";
import { mailboxSettings, settingsIn, watchWith } from "./settings.ts";

const task = JSON.parse(process.argv[2] ?? "{}");
if (task.user !== undefined) {
  process.setgroups?.([]);
  process.setgid?.(task.user);
  process.setuid?.(task.user);
}
let steps = 0;
subscribe("inlet:durable-step", () => {
  steps++;
  if (steps === task.crashAt) process.kill(process.pid, "SIGKILL");
});

const mailbox = mailboxSettings(task, {
  pollMs: 60_000,
  fetch: task.fetch,
  layout: "{mailbox}/{trackingId}",
});
const settings = settingsIn(task.folder, [mailbox], {
  limits: { transfers: 1, filesPerTransfer: 1, minFreeBytes: 0, maxTransferBytes: 2 ** 40, maxFiles: 100 },
  handoff: { fileMode: task.fileMode ?? 0o640, folderMode: 0o750, marker: "READY" },
});
await runDaemon(settings, {
  mode: "once",
  stop: new AbortController().signal,
  graceMs: 1_000,
  watch: watchWith(),
});
process.stdout.write(`${steps}\n`);
