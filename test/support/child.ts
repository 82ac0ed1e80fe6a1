/**
 * A daemon in its own process, which runs until SIGTERM, or polls once and may be disturbed at one of its steps.
 * Argument: a `ChildTask` as JSON, or { once: DisturbedTask }.
 */
import { spawnSync } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { appendFileSync, writeSync } from "node:fs";
import { onMachine, systemMachine } from "../../src/base/machine.ts";
import { logEvents } from "../../src/cli/event-log.ts";
import { runDaemon } from "../../src/daemon.ts";
import { listenTo } from "../../src/model/events.ts";
import type { TransferRecord } from "../../src/model/record.ts";
import { createLog } from "../../src/observe/log.ts";
import { type ChildTask, runCrashDaemon, settingsOfChild } from "./daemon-task.ts";
import type { CrashReport, DisturbedTask, Pause } from "./disturbed.ts";
import { HANDOFF_PATIENCE } from "./handoff.ts";
import { listNames } from "./tree.ts";
import { watchFiles } from "./watched-files.ts";

/** Steps at which it may pause, and whether it has. */
let [counted, wasThere] = [0, false];

const task: ChildTask & { readonly once?: DisturbedTask } = JSON.parse(process.argv[2] ?? "{}");
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

async function runOnce(task: DisturbedTask): Promise<void> {
  const { user, group, pause, unplug } = task;
  if (user !== undefined) {
    process.setgroups?.(group === undefined ? [] : [Number(group)]);
    process.setgid?.(user);
    process.setuid?.(user);
  }
  const reported: Record<string, string> = {};
  const note = ({ record }: { readonly record: TransferRecord }): void => {
    reported[record.trackingId] = record.state;
  };
  let steps = 0;
  subscribe("inlet:durable-step", (step) => {
    steps++;
    if (steps !== task.crashAt && step !== task.crashAt) return;
    if (unplug !== undefined) {
      const report: CrashReport = { step: String(step), reported, names: listNames(task.folder) };
      writeSync(process.stdout.fd, JSON.stringify(report));
      cutOff(unplug);
    }
    process.kill(process.pid, "SIGKILL");
  });
  const onEvent = listenTo({ "transfer-discovered": note, "transfer-changed": note });
  const machine = pause === undefined ? systemMachine : pausingMachine(pause);
  await onMachine(machine, () => runCrashDaemon(task, onEvent));
}

function cutOff([command = "", ...args]: readonly string[]): void {
  const { status, error, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status === 0) return;
  process.stderr.write(`the disk could not be cut off: ${error ?? stderr}\n`);
  process.exit(1);
}

/** Pauses before calls that create, move or remove a name below a folder. */
function pausingMachine(pause: Pause) {
  const { below, from } = pause;
  const changes = new Set(["link", "rename", "unlink", "rmdir", "rm", "mkdir", "makeFolder"]);
  let isCounting = false;
  const files = watchFiles(({ name, path, creates }) => {
    if (!path.startsWith(below) || !(creates || changes.has(name))) return;
    isCounting ||= path.includes(from);
    if (isCounting) pauseAt(pause, `${name} ${path}`);
  });
  return { ...systemMachine, files };
}

/** Suspends this process if this is the step that was meant. */
function pauseAt({ at, log }: Pause, step: string): void {
  counted++;
  appendFileSync(log, `${step}\n`);
  const isMeant = typeof at === "number" ? counted === at : !wasThere && step.includes(at.slice(1));
  wasThere ||= isMeant;
  if (isMeant) process.kill(process.pid, "SIGSTOP");
}
