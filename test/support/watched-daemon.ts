/** A daemon in its own process, whose log, status, readiness and metrics a test reads. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect } from "vitest";
import type { Status } from "../../src/model/status.ts";
import { jsonOf } from "./api.ts";

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly address?: string;
  readonly trackingId?: string;
}

/** A trouble, or a transfer that needs attention with its reason as code. */
interface Report {
  readonly what: string;
  readonly code: string;
  readonly message: string;
}

/** Everything that tells an operator whether work stops. */
export interface Health {
  readonly reports: readonly Report[];
  readonly ready: boolean;
  /** `inlet_trouble` by its label, and `attention`. */
  readonly metrics: readonly string[];
  /** Kinds of promises that are broken, with or without an explanation. */
  readonly overdue: readonly string[];
  /** `trackingId reason` of transfers that continue without a person. */
  readonly queued: readonly string[];
}

/** For an answer of its console. */
const ANSWER_MS = 60_000;

export const FINE = { reports: [], ready: true, metrics: [], overdue: [] } as const;

export interface WatchedDaemon {
  /** Messages of level warn and worse. */
  alarms(): string[];
  /** The transfers with this log message, sorted. */
  logged(message: string): (string | undefined)[];
  /** The last lines of its log, without those for debugging. */
  lastLines(): string;
  /** `undefined` until its console is open. */
  health(): Promise<Health | undefined>;
  expectFine(): Promise<void>;
  stop(): Promise<void>;
}

export function watchDaemon(child: ChildProcess): WatchedDaemon {
  const lines = linesOf(child);
  const parsed = () => lines.map((line) => JSON.parse(line) as Line);
  let address: string | undefined;
  const get = async (path: string) => {
    address ??= parsed().find(({ msg }) => msg === "the console is open")?.address;
    return address === undefined
      ? undefined
      : fetch(new URL(path, address), { signal: AbortSignal.timeout(ANSWER_MS) });
  };
  const health = async () => {
    const answers = await Promise.all(["/api/status", "/readyz", "/metrics"].map(get));
    const [status, ready, metrics] = answers;
    if (status === undefined || ready === undefined || metrics === undefined) return undefined;
    const facts = healthOf((await jsonOf(status)) as Status);
    await ready.body?.cancel();
    return { ...facts, ready: ready.status === 200, ...metricsOf(await metrics.text()) };
  };
  return {
    alarms: () =>
      parsed()
        .filter(({ level }) => ["warn", "error", "fatal"].includes(level))
        .map(({ msg }) => msg),
    logged: (message) =>
      parsed()
        .filter(({ msg }) => msg === message)
        .map(({ trackingId }) => trackingId)
        .toSorted(),
    lastLines() {
      const others = lines.filter((line) => !line.startsWith('{"level":"debug"'));
      return others.slice(-50).join("\n");
    },
    health,
    async expectFine() {
      await expect.poll(health, { interval: 100 }).toMatchObject(FINE);
    },
    async stop() {
      const closed = once(child, "close");
      child.kill("SIGTERM");
      await expect.poll(() => child.exitCode).toBe(0);
      await closed;
    },
  };
}

/** The lines that it has printed so far, to any output. */
export function linesOf(child: ChildProcess): string[] {
  const lines: string[] = [];
  if (child.stdout === null || child.stderr === null) throw new Error("no pipes");
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on("line", (line) => lines.push(line));
  }
  return lines;
}

function healthOf({ troubles, attention, overdue, queued }: Status) {
  return {
    reports: [
      ...troubles.map(({ what, code, message }) => ({ what, code, message })),
      ...attention.map(({ trackingId, state, reason = state, message = "" }) => ({
        what: `transfer ${trackingId}`,
        code: reason,
        message,
      })),
    ],
    overdue: overdue.map(({ kind }) => kind),
    queued: queued.map(({ trackingId, reason }) => `${trackingId} ${reason}`),
  };
}

function metricsOf(text: string) {
  const troubles = [...text.matchAll(/^inlet_trouble\{what="(\w+)"\} 1$/gm)].map(([, what = ""]) => what);
  const attention = /^inlet_attention [1-9]/m.test(text) ? ["attention"] : [];
  return { metrics: [...troubles, ...attention] };
}
