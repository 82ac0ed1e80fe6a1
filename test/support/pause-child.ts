/**
 * A daemon in a process of its own that polls once. Argument: a JSON of a `CrashTask`, and with { pauseAt, steps } it
 * notes the durable steps that follow the discovery of a transfer in the file `steps`, and stops itself with SIGSTOP at
 * one of them.
 */
import { subscribe } from "node:diagnostics_channel";
import { appendFileSync } from "node:fs";
import { runCrashDaemon } from "./crash-daemon.ts";

const task = JSON.parse(process.argv[2] ?? "{}");
let isCounting = false;
let count = 0;
subscribe("inlet:durable-step", (step) => {
  if (!isCounting || task.steps === undefined) return;
  count++;
  appendFileSync(task.steps, `${step}\n`);
  if (count === task.pauseAt) process.kill(process.pid, "SIGSTOP");
});
await runCrashDaemon(task, (event) => {
  if (event.type === "transfer-discovered") isCounting = true;
});
