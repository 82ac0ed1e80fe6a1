/** A running daemon under measurement. */
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Role, type RunningDaemon, startDaemon } from "./daemons.ts";
import { readWait, sampleProcess } from "./processes.ts";

const LOOK_EVERY_MS = 10;
const LONGEST_MS = 20 * 60_000;

/** Dispose it to kill the daemon. */
export interface LiveDaemon extends AsyncDisposable {
  readonly daemon: RunningDaemon;
  /** The path of its console's socket. */
  readonly socket: string;
  /** A figure of `/metrics`, summed over its labels; 0 before it exists. */
  metric(name: string): Promise<number>;
  /** Waits for a condition. Throws if the daemon ends, or if it takes too long. `everyMs`: for conditions that are expensive. */
  until(what: string, condition: () => boolean | Promise<boolean>, everyMs?: number): Promise<void>;
  residentMib(): number;
  peakMib(): number;
  cpuSeconds(): number;
  /** How long its first thread was ready to run, and waited for a processor. */
  waitedSeconds(): number;
}

/** Resolves when the daemon is ready. `folder`: for its socket. `listen`: instead of the socket, and then without metrics. */
export async function startLive(
  launcher: string,
  config: string,
  folder: string,
  stop: AbortSignal,
  role: Role = "all",
  listen?: string,
): Promise<LiveDaemon> {
  const socket = join(folder, `page-${process.hrtime.bigint()}`);
  const daemon = startDaemon(launcher, config, role, listen ?? `unix:${socket}`);
  const sample = () => {
    const found = sampleProcess(daemon.pid);
    if (found === undefined) throw new Error(`a daemon has ended: ${daemon.warnings.join("; ")}`);
    return found;
  };
  const live: LiveDaemon = {
    daemon,
    socket,
    async metric(name) {
      const lines = (await ask(socket, "/metrics")).split("\n");
      const found = lines.filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
      return found.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
    },
    async until(what, condition, everyMs = LOOK_EVERY_MS) {
      const latestMs = performance.now() + LONGEST_MS;
      while (!(await condition())) {
        stop.throwIfAborted();
        if (daemon.hasFailed()) throw new Error(`a daemon has ended: ${daemon.warnings.join("; ")}`);
        if (performance.now() > latestMs) throw new Error(`this takes too long: ${what}`);
        await pause(everyMs);
      }
    },
    residentMib: () => sample().residentMib,
    peakMib: () => sample().peakMib,
    cpuSeconds: () => sample().cpuSeconds,
    waitedSeconds: () => readWait(daemon.pid),
    [Symbol.asyncDispose]: () => daemon[Symbol.asyncDispose](),
  };
  try {
    await live.until("the daemon to be ready", () => daemon.loggedMs("ready") !== undefined);
    return live;
  } catch (error) {
    await daemon[Symbol.asyncDispose]();
    throw error;
  }
}

function ask(socketPath: string, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  request({ socketPath, path }, async (answer) => {
    let text = "";
    for await (const chunk of answer) text += chunk;
    resolve(text);
  })
    .on("error", reject)
    .end();
  return promise;
}
