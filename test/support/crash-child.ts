/**
 * A daemon in a process of its own that polls once, and stops itself with SIGKILL at one of its durable steps. Before
 * that it says its last words and runs the command that unplugs its disk, where it is given one.
 * Argument: a JSON of a `CrashTask` with { crashAt }, and with { user, unplug } where given.
 */
import { spawnSync } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { writeSync } from "node:fs";
import { listenTo } from "../../src/model/events.ts";
import type { TransferRecord } from "../../src/model/record.ts";
import { runCrashDaemon } from "./crash-daemon.ts";
import { type LastWords, listNames } from "./last-words.ts";

const task = JSON.parse(process.argv[2] ?? "{}");
if (task.user !== undefined) {
  process.setgroups?.([]);
  process.setgid?.(task.user);
  process.setuid?.(task.user);
}
const told: Record<string, string> = {};
const note = ({ record }: { readonly record: TransferRecord }): void => {
  told[record.trackingId] = record.state;
};
let steps = 0;
subscribe("inlet:durable-step", (step) => {
  steps++;
  if (steps !== task.crashAt) return;
  if (task.unplug !== undefined) unplug(String(step), task.unplug);
  process.kill(process.pid, "SIGKILL");
});
await runCrashDaemon(task, listenTo({ "transfer-discovered": note, "transfer-changed": note }));

function unplug(step: string, [command = "", ...args]: string[]): void {
  const words: LastWords = { step, told, names: listNames(task.folder) };
  writeSync(process.stdout.fd, JSON.stringify(words));
  const { status, error, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status === 0) return;
  process.stderr.write(`the disk could not be unplugged: ${error ?? stderr}\n`);
  process.exit(1);
}
