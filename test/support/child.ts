/**
 * A daemon in its own process, which runs until SIGTERM, or polls once and may be disturbed at one of its steps.
 * Argument: a `ChildTask` as JSON, or { once: CrashTask }.
 */
import { spawnSync } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { logEvents } from "../../src/cli/event-log.ts";
import { runDaemon } from "../../src/daemon.ts";
import { createLog } from "../../src/observe/log.ts";
import { type ChildTask, type CrashTask, runCrashDaemon, settingsOfChild } from "./daemon-task.ts";
import { HANDOFF_PATIENCE } from "./handoff.ts";

const task: ChildTask & { readonly once?: CrashTask } = JSON.parse(process.argv[2] ?? "{}");
if (task.once === undefined) await runUntilStopped(task);
else await runOnce(task.once);

async function runUntilStopped(task: ChildTask): Promise<void> {
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  await runDaemon(settingsOfChild(task), {
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
}

async function runOnce(task: CrashTask): Promise<void> {
  const { user, unplug } = task;
  if (user !== undefined) {
    process.setgroups?.([]);
    process.setgid?.(user);
    process.setuid?.(user);
  }
  subscribe("inlet:durable-step", (step) => {
    if (step !== task.crashAt) return;
    if (unplug !== undefined) cutOff(unplug);
    process.kill(process.pid, "SIGKILL");
  });
  await runCrashDaemon(task);
}

function cutOff([command = "", ...args]: readonly string[]): void {
  const { status, error, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status === 0) return;
  process.stderr.write(`the disk could not be cut off: ${error ?? stderr}\n`);
  process.exit(1);
}
