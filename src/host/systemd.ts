/**
 * The daemon as a service of systemd: it is ready when a first poll was tried, says in one line how things stand, and
 * feeds the watchdog only as long as what runs gets on.
 */
import { stat } from "node:fs/promises";
import type { Emit } from "../model/events.ts";
import type { Status } from "../model/status.ts";
import { createNotifier, type Notifier } from "./notify.ts";
import { describeInOneLine } from "./status-line.ts";

export interface Vitals {
  status(): Status;
  /** A first poll was tried, or this process does none. */
  isReady(): boolean;
  /** What does not get on any more, or `undefined`. */
  stuck(): string | undefined;
  /** Called after every change, very often. Returns what ends it. */
  onChange(listener: () => void): () => void;
}

export interface Host {
  /** Until it is closed, systemd is told how things stand; from `stop` on that it stops. */
  attend(vitals: Vitals, stop: AbortSignal): { close(): Promise<void> };
  /** Says that settings are read again, and when that is over; not before it was ready for the first time. */
  reloading(work: () => Promise<void>): Promise<void>;
}

/** The variables that systemd sets. */
export interface HostEnvironment {
  readonly NOTIFY_SOCKET?: string | undefined;
  readonly WATCHDOG_USEC?: string | undefined;
  readonly WATCHDOG_PID?: string | undefined;
  readonly PATH?: string | undefined;
}

/** Often enough for whoever looks, and seldom enough to cost nothing. */
const STATUS_EVERY_MS = 5_000;
const UNTIL_READY_MS = 100;
/** While it starts: a queue or a disk may be waited for, however long that takes. */
const EXTEND_EVERY_MS = 20_000;
const EXTEND_BY_US = 60_000_000;
/** So many times within what the watchdog allows. */
const FEEDS = 3;

/** `undefined` where nobody wants to be told. */
export function openHost(env: HostEnvironment, emit: Emit): Host | undefined {
  const { NOTIFY_SOCKET: socket, PATH: path } = env;
  if (socket === undefined || socket === "") return undefined;
  const notifier = createNotifier(socket, path, (reason) => emit({ type: "supervisor-unreachable", reason }));
  let isReady = false;
  const becameReady = () => {
    isReady = true;
  };
  return {
    attend: (vitals, stop) => attend(notifier, vitals, watchdogMs(env), emit, stop, becameReady),
    async reloading(work) {
      if (!isReady) return work();
      const microseconds = process.hrtime.bigint() / 1000n;
      await notifier.tell("RELOADING=1", `MONOTONIC_USEC=${microseconds}`);
      try {
        await work();
      } finally {
        await notifier.tell("READY=1");
      }
    },
  };
}

function attend(
  notifier: Notifier,
  vitals: Vitals,
  watchdog: number | undefined,
  emit: Emit,
  stop: AbortSignal,
  becameReady: () => void,
) {
  let isReady = false;
  let said = "";
  let timer: NodeJS.Timeout | undefined;

  const show = () => {
    timer = undefined;
    const line = describeInOneLine(vitals.status());
    const becomesReady = !isReady && vitals.isReady();
    if (line === said && !becomesReady) return;
    isReady ||= becomesReady;
    said = line;
    void notifier.tell(...(becomesReady ? ["READY=1"] : []), `STATUS=${line}`);
    if (becomesReady) becameReady();
  };
  const showSoon = () => {
    if (stop.aborted) return;
    timer ??= setTimeout(show, isReady ? STATUS_EVERY_MS : UNTIL_READY_MS);
  };
  const unhear = vitals.onChange(showSoon);
  const extending = setInterval(() => {
    if (isReady) clearInterval(extending);
    else void notifier.tell(`EXTEND_TIMEOUT_USEC=${EXTEND_BY_US}`);
  }, EXTEND_EVERY_MS);
  const feeding = watchdog === undefined ? undefined : feed(notifier, vitals, watchdog / FEEDS, emit);
  // More time, asked for now, would put the stop off.
  const onStop = () => {
    clearTimeout(timer);
    clearInterval(extending);
    void notifier.tell("STOPPING=1", "STATUS=Stopping: what runs ends or is parked.");
  };
  if (stop.aborted) onStop();
  else stop.addEventListener("abort", onStop, { once: true });
  showSoon();
  return {
    async close() {
      stop.removeEventListener("abort", onStop);
      unhear();
      clearTimeout(timer);
      clearInterval(extending);
      clearInterval(feeding);
      await notifier.close();
    },
  };
}

/**
 * That this timer runs shows that the event loop does, and a file that is looked at that the threads do that work on
 * files; the rest is said by the work itself.
 */
function feed(notifier: Notifier, vitals: Vitals, everyMs: number, emit: Emit): NodeJS.Timeout {
  let isTold = false;
  const once = async () => {
    const stuck = vitals.stuck();
    if (stuck === undefined) {
      await stat("/");
      return notifier.tell("WATCHDOG=1");
    }
    if (!isTold) emit({ type: "work-stuck", work: stuck });
    isTold = true;
  };
  return setInterval(() => void once().catch(() => {}), everyMs);
}

/** Only where it is this very process that is watched. */
function watchdogMs({ WATCHDOG_USEC: microseconds, WATCHDOG_PID: pid }: HostEnvironment): number | undefined {
  if (pid !== undefined && pid !== String(process.pid)) return undefined;
  const wanted = Number(microseconds);
  return Number.isFinite(wanted) && wanted > 0 ? wanted / 1000 : undefined;
}
