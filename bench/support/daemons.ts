/** Daemons as processes, and their logs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export type Role = "all" | "worker" | "scheduler";

/** One line of a daemon's log. */
interface LogLine {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
  readonly fault?: { readonly message?: string };
}

/** Dispose it to kill the daemon, unless it was stopped before. */
export interface RunningDaemon extends AsyncDisposable {
  readonly role: Role;
  readonly pid: number;
  readonly startedMs: number;
  /** When it first logged this message. */
  loggedMs(msg: string): number | undefined;
  /** How often it logged this message. */
  count(msg: string): number;
  /** The first few warnings and errors. */
  readonly warnings: readonly string[];
  /** It has ended without a stop. */
  hasFailed(): boolean;
  /** Sends SIGTERM, and resolves to the exit code. */
  stop(): Promise<number | null>;
}

const WARNINGS = ["warn", "error", "fatal"];
const MAX_WARNINGS = 5;
/** Each daemon has its own folder for its socket. */
let started = 0;

/** `listen`: the address of its own console. */
export function startDaemon(launcher: string, config: string, role: Role, listen: string): RunningDaemon {
  const startedMs = Date.now();
  const child = spawn(process.execPath, [launcher, "run", "--config", config], {
    env: {
      ...process.env,
      INLET_ROLE: role,
      INLET_HTTP__LISTEN: listen,
      RUNTIME_DIRECTORY: `${config}.run-${started++}`,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const first = new Map<string, number>();
  const counts = new Map<string, number>();
  const warnings: string[] = [];
  const warn = (text: string) => {
    if (warnings.length < MAX_WARNINGS) warnings.push(`${role}: ${text}`);
  };
  createInterface({ input: child.stdout }).on("line", (text) => {
    const { level, time, msg, fault } = JSON.parse(text) as LogLine;
    if (!first.has(msg)) first.set(msg, Date.parse(time));
    counts.set(msg, (counts.get(msg) ?? 0) + 1);
    if (WARNINGS.includes(level)) warn(`${msg}${fault?.message === undefined ? "" : ` (${fault.message})`}`);
  });
  createInterface({ input: child.stderr }).on("line", warn);
  let [isStopping, hasEnded] = [false, false];
  const ended = once(child, "close").then(([code]) => {
    hasEnded = true;
    return code as number | null;
  });
  return {
    role,
    pid: child.pid ?? 0,
    startedMs,
    loggedMs: (msg) => first.get(msg),
    count: (msg) => counts.get(msg) ?? 0,
    warnings,
    hasFailed: () => hasEnded && !isStopping,
    async stop() {
      isStopping = true;
      child.kill("SIGTERM");
      return ended;
    },
    async [Symbol.asyncDispose]() {
      if (hasEnded) return;
      child.kill("SIGKILL");
      await ended;
    },
  };
}
