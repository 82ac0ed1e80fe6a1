/**
 * A daemon in a process of its own that runs until SIGTERM, with little patience, and logs to stdout as JSON lines.
 * Argument: a JSON of { url, clientId, folder }.
 */
import { tellLog } from "../../src/cli/telling.ts";
import { runDaemon } from "../../src/daemon.ts";
import { createLog } from "../../src/observe/log.ts";
import { mailboxSettings, settingsIn } from "./settings.ts";

const task = JSON.parse(process.argv[2] ?? "{}");
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
await runDaemon(settingsIn(task.folder, [mailboxSettings(task)]), {
  mode: "run",
  stop: stop.signal,
  graceMs: 5_000,
  watch: tellLog(createLog(process.stdout, "debug")),
  patience: { retryMs: 50, diskMs: 50, lockedMs: 200 },
});
