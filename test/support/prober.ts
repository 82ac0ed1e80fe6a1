/**
 * Asks `/healthz` again and again, as a program of its own: `node prober.ts PORT`. At the end of its input, prints a `Probed` as JSON.
 * It has a higher priority than other programs if it may, and measures how late it is itself.
 */
import { connect } from "node:net";
import { setPriority } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";

export interface Probed {
  readonly probes: number;
  readonly unanswered: number;
  readonly medianMs: number;
  /** Of a hundred probes, 99 were faster. */
  readonly p99Ms: number;
  readonly longestMs: number;
  /** The longest time in which this program could not do its own work: so much of a time above is not the daemon's. */
  readonly latenessMs: number;
}

const EVERY_MS = 50;
const PRIORITY = -15;

try {
  setPriority(PRIORITY);
} catch {
  // Only root may.
}
const lateness = monitorEventLoopDelay({ resolution: 5 });
lateness.enable();
const times: number[] = [];
let unanswered = 0;
let isOver = false;
process.stdin.resume().once("end", () => {
  isOver = true;
});
while (!isOver) {
  const startedMs = performance.now();
  if (!(await ask(Number(process.argv[2])))) unanswered++;
  times.push(performance.now() - startedMs);
  await pause(EVERY_MS);
}
times.sort((one, other) => one - other);
const at = (part: number) => Math.round(times[Math.floor((times.length - 1) * part)] ?? 0);
const probed: Probed = {
  probes: times.length,
  unanswered,
  medianMs: at(0.5),
  p99Ms: at(0.99),
  longestMs: at(1),
  latenessMs: Math.round(lateness.max / 1e6),
};
process.stdout.write(JSON.stringify(probed));

function ask(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let text = "";
  connect(port, "127.0.0.1")
    .on("error", () => {})
    .on("data", (chunk) => {
      text += String(chunk);
    })
    .on("close", () => resolve(text.startsWith("HTTP/1.1 200 ")))
    .write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return promise;
}
