/** Daemons as processes of their own, and what they say in their logs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export type Role = "all" | "worker" | "scheduler";

/** One line of a daemon's log. */
interface LogLine {
  readonly level: number;
  readonly time: string;
  readonly msg: string;
  readonly fault?: { readonly message?: string };
}

/** Disposing of it kills it, where it has not been stopped before. */
export interface RunningDaemon extends AsyncDisposable {
  readonly role: Role;
  readonly pid: number;
  readonly startedMs: number;
  /** When it first said this; `undefined` where it has not. */
  saidMs(msg: string): number | undefined;
  /** How often it said this. */
  count(msg: string): number;
  /** Warnings and errors, the first few. */
  readonly complaints: readonly string[];
  /** Whether it has ended without being asked to. */
  hasFailed(): boolean;
  /** Asks it to end, and resolves to its exit code when it has. */
  stop(): Promise<number | null>;
}

const WARNING = 40;
const MOST_COMPLAINTS = 5;

/** `socket`: where its status page is, which each needs for itself. */
export function startDaemon(launcher: string, config: string, role: Role, socket: string): RunningDaemon {
  const startedMs = Date.now();
  const child = spawn(process.execPath, [launcher, "run", "--config", config], {
    env: { ...process.env, INLET_ROLE: role, INLET_HTTP__LISTEN: `unix:${socket}` },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const first = new Map<string, number>();
  const counts = new Map<string, number>();
  const complaints: string[] = [];
  const complain = (text: string) => {
    if (complaints.length < MOST_COMPLAINTS) complaints.push(`${role}: ${text}`);
  };
  createInterface({ input: child.stdout }).on("line", (text) => {
    const { level, time, msg, fault } = JSON.parse(text) as LogLine;
    if (!first.has(msg)) first.set(msg, Date.parse(time));
    counts.set(msg, (counts.get(msg) ?? 0) + 1);
    if (level >= WARNING) complain(`${msg}${fault?.message === undefined ? "" : ` (${fault.message})`}`);
  });
  createInterface({ input: child.stderr }).on("line", complain);
  let [wasAsked, hasEnded] = [false, false];
  const ended = once(child, "close").then(([code]) => {
    hasEnded = true;
    return code as number | null;
  });
  return {
    role,
    pid: child.pid ?? 0,
    startedMs,
    saidMs: (msg) => first.get(msg),
    count: (msg) => counts.get(msg) ?? 0,
    complaints,
    hasFailed: () => hasEnded && !wasAsked,
    async stop() {
      wasAsked = true;
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
