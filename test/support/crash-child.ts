/**
 * A daemon in its own process that polls once, and kills itself with SIGKILL at one of its durable steps, which `crashAt`
 * gives as a number or by its name. With `unplug` it
 * first prints a `CrashReport` and runs that command, which cuts the disk off.
 * Argument: a JSON of a `CrashTask` with { crashAt }, and optionally { user, unplug }.
 */
import { spawnSync } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { writeSync } from "node:fs";
import { listenTo } from "../../src/model/events.ts";
import type { TransferRecord } from "../../src/model/record.ts";
import { runCrashDaemon } from "./crash-daemon.ts";
import { type CrashReport, listNames } from "./crash-report.ts";

const task = JSON.parse(process.argv[2] ?? "{}");
if (task.user !== undefined) {
  process.setgroups?.(task.group === undefined ? [] : [Number(task.group)]);
  process.setgid?.(task.user);
  process.setuid?.(task.user);
}
const reported: Record<string, string> = {};
const note = ({ record }: { readonly record: TransferRecord }): void => {
  reported[record.trackingId] = record.state;
};
let steps = 0;
subscribe("inlet:durable-step", (step) => {
  steps++;
  if (steps !== task.crashAt && step !== task.crashAt) return;
  if (task.unplug !== undefined) unplug(String(step), task.unplug);
  process.kill(process.pid, "SIGKILL");
});
await runCrashDaemon(task, listenTo({ "transfer-discovered": note, "transfer-changed": note }));

function unplug(step: string, [command = "", ...args]: string[]): void {
  const report: CrashReport = { step, reported, names: listNames(task.folder) };
  writeSync(process.stdout.fd, JSON.stringify(report));
  const { status, error, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status === 0) return;
  process.stderr.write(`the disk could not be cut off: ${error ?? stderr}\n`);
  process.exit(1);
}
