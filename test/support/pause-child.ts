/**
 * A daemon in its own process that polls once. Argument: a JSON of a `CrashTask`. With { pauseAt, steps } it logs the
 * durable steps after the discovery of a transfer to the file `steps`, and suspends itself with SIGSTOP at one of them.
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
