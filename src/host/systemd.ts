/**
 * The daemon as a systemd service: it reports that it is ready after the first poll, sends a status line, and feeds the
 * watchdog while its work makes progress.
 */
import { stat } from "node:fs/promises";
import type { Emit } from "../model/events.ts";
import type { Status } from "../model/status.ts";
import { describeInOneLine } from "./status-line.ts";
import { createNotifier, type Notifier } from "./systemd-notify.ts";

export interface Vitals {
  status(): Status;
  /** True after the first poll, and in a process that does not poll. */
  isReady(): boolean;
  /** The work that makes no progress; `undefined` for none. */
  stuck(): string | undefined;
  /** Calls the listener after every change, very often. Returns the function that unsubscribes it. */
  onChange(listener: () => void): () => void;
}

export interface Host {
  /** Reports the status to systemd until it is closed, and `STOPPING` when `stop` aborts. */
  startReporting(vitals: Vitals, stop: AbortSignal): { close(): Promise<void> };
  /** Runs the work of a reload. After the daemon has become ready, systemd is notified before and after the work. */
  reloading(work: () => Promise<void>): Promise<void>;
}

/** The variables that systemd sets. */
export interface HostEnvironment {
  readonly NOTIFY_SOCKET?: string | undefined;
  readonly WATCHDOG_USEC?: string | undefined;
  readonly WATCHDOG_PID?: string | undefined;
  readonly PATH?: string | undefined;
}

const STATUS_EVERY_MS = 5_000;
const READY_CHECK_MS = 100;
/** How often to ask systemd for more time to start: the start may have to wait for a queue or a disk. */
const EXTEND_EVERY_MS = 20_000;
const EXTEND_BY_US = 60_000_000;
/** Notifications per watchdog interval. */
const FEEDS = 3;

/** `undefined` without systemd. */
export function openHost(env: HostEnvironment, emit: Emit): Host | undefined {
  const { NOTIFY_SOCKET: socket, PATH: path } = env;
  if (socket === undefined || socket === "") return undefined;
  const notifier = createNotifier(socket, path, (reason) => emit({ type: "supervisor-unreachable", reason }));
  let isReady = false;
  return {
    startReporting(vitals, stop) {
      let shown = "";
      let timer: NodeJS.Timeout | undefined;
      const show = () => {
        timer = undefined;
        const line = describeInOneLine(vitals.status());
        const becomesReady = !isReady && vitals.isReady();
        if (line === shown && !becomesReady) return;
        isReady ||= becomesReady;
        shown = line;
        void notifier.send(...(becomesReady ? ["READY=1"] : []), `STATUS=${line}`);
      };
      const showSoon = () => {
        if (stop.aborted) return;
        timer ??= setTimeout(show, isReady ? STATUS_EVERY_MS : READY_CHECK_MS);
      };
      const unsubscribe = vitals.onChange(showSoon);
      const extending = setInterval(() => {
        if (isReady) clearInterval(extending);
        else void notifier.send(`EXTEND_TIMEOUT_USEC=${EXTEND_BY_US}`);
      }, EXTEND_EVERY_MS);
      const watchdog = watchdogMs(env);
      const feeding = watchdog === undefined ? undefined : feed(notifier, vitals, watchdog / FEEDS, emit);
      const onStop = () => {
        clearTimeout(timer);
        // While the daemon stops, the same notification would extend the time limit of the stop.
        clearInterval(extending);
        void notifier.send("STOPPING=1", "STATUS=Stopping; unfinished downloads continue at the next start.");
      };
      if (stop.aborted) onStop();
      else stop.addEventListener("abort", onStop, { once: true });
      showSoon();
      return {
        async close() {
          stop.removeEventListener("abort", onStop);
          unsubscribe();
          clearTimeout(timer);
          clearInterval(extending);
          clearInterval(feeding);
          await notifier.close();
        },
      };
    },
    async reloading(work) {
      if (!isReady) return work();
      const microseconds = process.hrtime.bigint() / 1000n;
      await notifier.send("RELOADING=1", `MONOTONIC_USEC=${microseconds}`);
      try {
        await work();
      } finally {
        await notifier.send("READY=1");
      }
    },
  };
}

/** The timer proves that the event loop runs, and `stat` that the thread pool does; the work reports its own progress. */
function feed(notifier: Notifier, vitals: Vitals, everyMs: number, emit: Emit): NodeJS.Timeout {
  let reported: string | undefined;
  const feedOnce = async () => {
    const stuck = vitals.stuck();
    const isNew = stuck !== reported;
    reported = stuck;
    if (stuck === undefined) {
      await stat("/");
      return notifier.send("WATCHDOG=1");
    }
    if (isNew) emit({ type: "work-stuck", work: stuck });
  };
  // Then systemd restarts us.
  return setInterval(() => void feedOnce().catch(() => {}), everyMs);
}

/** `undefined` if systemd watches another process, or none. */
function watchdogMs({ WATCHDOG_USEC: microseconds, WATCHDOG_PID: pid }: HostEnvironment): number | undefined {
  if (pid !== undefined && pid !== String(process.pid)) return undefined;
  const wanted = Number(microseconds);
  return Number.isFinite(wanted) && wanted > 0 ? wanted / 1000 : undefined;
}
