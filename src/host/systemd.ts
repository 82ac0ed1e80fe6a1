/**
 * The daemon as a systemd service: it reports that it is ready after the first poll, sends a status line, and feeds the
 * watchdog while its work makes progress.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { Mutex } from "../base/concurrency.ts";
import { messageOf } from "../base/faults.ts";
import { formatBytes, formatCount } from "../base/phrases.ts";
import { describeStartFailure } from "../base/system-program.ts";
import { pauseOrAbort } from "../base/timers.ts";
import type { Emit } from "../model/events.ts";
import type { Status } from "../model/status.ts";

export interface Vitals {
  status(): Status;
  /** True after the first poll, and in a process that does not poll. */
  isReady(): boolean;
  /** The work that makes no progress; `undefined` for none. */
  stuck(): string | undefined;
  /** Calls the listener after every change, very often. Returns the function that unsubscribes it. */
  onChange(listener: () => void): () => void;
}

export type Host = NonNullable<ReturnType<typeof openHost>>;

const STATUS_EVERY_MS = 5_000;
const READY_CHECK_MS = 100;
/** How often to ask systemd for more time to start: the start may have to wait for a queue or a disk. */
const EXTEND_EVERY_MS = 20_000;
const EXTEND_BY_US = 60_000_000;
/** Notifications per watchdog interval. */
const FEEDS = 3;
const PROGRAM = "systemd-notify";
/** The program takes a few milliseconds, unless systemd itself hangs. */
const TIMEOUT_MS = 3_000;
const MAX_CHARACTERS = 300;

/** `undefined` without systemd. */
export function openHost(env: NodeJS.ProcessEnv, emit: Emit) {
  const { NOTIFY_SOCKET: socket, PATH: path } = env;
  if (socket === undefined || socket === "") return undefined;
  const notifier = createNotifier(socket, path, (reason) => emit({ type: "supervisor-unreachable", reason }));
  let isReady = false;
  return {
    /** Reports the status to systemd until it is closed, and `STOPPING` when `stop` aborts. */
    startReporting(vitals: Vitals, stop: AbortSignal) {
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
        async close(): Promise<void> {
          stop.removeEventListener("abort", onStop);
          unsubscribe();
          clearTimeout(timer);
          clearInterval(extending);
          clearInterval(feeding);
          await notifier.close();
        },
      };
    },
    /** Runs the work of a reload. After the daemon has become ready, systemd is notified before and after the work. */
    async reloading(work: () => Promise<void>): Promise<void> {
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
  // Without `WATCHDOG=1`, systemd restarts the daemon.
  return setInterval(() => void feedOnce().catch(() => {}), everyMs);
}

/** `undefined` if systemd watches another process, or none. */
function watchdogMs({ WATCHDOG_USEC, WATCHDOG_PID }: NodeJS.ProcessEnv): number | undefined {
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(process.pid)) return undefined;
  const microseconds = Number(WATCHDOG_USEC);
  return Number.isFinite(microseconds) && microseconds > 0 ? microseconds / 1000 : undefined;
}

/**
 * The socket of systemd takes datagrams, which Node cannot send, so the program `systemd-notify` sends them, and waits until
 * systemd has processed them. The unit allows that with `NotifyAccess=all`. `onFailure` is called once, for the first failure.
 */
function createNotifier(socket: string, path: string | undefined, onFailure: (reason: string) => void) {
  const env = { NOTIFY_SOCKET: socket, ...(path === undefined ? {} : { PATH: path }) };
  const mutex = new Mutex();
  let hasFailed = false;
  let isClosed = false;
  const notify = async (assignments: readonly string[]) => {
    if (isClosed) return;
    try {
      await run(assignments, env);
    } catch (error) {
      if (!hasFailed) onFailure(messageOf(error));
      hasFailed = true;
    }
  };
  return {
    /** Sends assignments such as `READY=1`, in the order of the calls. Resolves when systemd has processed them. */
    send: (...assignments: readonly string[]): Promise<void> => mutex.run(() => notify(assignments)),
    /** Waits for pending notifications, but only for a moment: systemd may hang. */
    async close(): Promise<void> {
      const timeout = new AbortController();
      await Promise.race([mutex.idle(), pauseOrAbort(TIMEOUT_MS, timeout.signal)]);
      isClosed = true;
      timeout.abort();
    },
  };
}

type Notifier = ReturnType<typeof createNotifier>;

async function run(assignments: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
  const child = spawn(PROGRAM, [...assignments], { env, stdio: "ignore", timeout: TIMEOUT_MS });
  const [code, signal] = await once(child, "exit").catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${PROGRAM} ${describeStartFailure(error)}`);
  });
  if (code !== 0) throw new Error(`${PROGRAM} ended with ${code ?? signal}`);
}

/** The status in one line, for `systemctl status`. */
export function describeInOneLine(status: Status): string {
  const { troubles, totals, mailboxes, recent } = status;
  const [trouble] = troubles;
  const active = mailboxes.filter(({ paused }) => !paused).length;
  const parts = [
    trouble !== undefined && `${trouble.what}: ${trouble.message}`,
    troubles.length > 1 && formatCount(troubles.length - 1, "more problem", "more problems"),
    totals.attention > 0 && `${formatCount(totals.attention, "transfer needs", "transfers need")} attention`,
    describeWork(status),
    `${formatCount(active, "mailbox is", "mailboxes are")} polled`,
    recent[0] !== undefined && `last delivery ${recent[0].at}`,
  ];
  const line = parts
    .filter(Boolean)
    .join("; ")
    .replaceAll(/\p{Cc}+/gu, " ");
  return line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS - 1)}…` : line;
}

function describeWork({ downloading, totals }: Status): string | undefined {
  if (totals.downloading === 0) {
    return totals.queued > 0 ? `${formatCount(totals.queued, "transfer", "transfers")} queued` : undefined;
  }
  const done = downloading.reduce((sum, { progress }) => sum + (progress?.doneBytes ?? 0), 0);
  const total = downloading.reduce((sum, { progress }) => sum + (progress?.totalBytes ?? 0), 0);
  const share = total === 0 ? "" : `, ${formatBytes(done)} of ${formatBytes(total)}`;
  return `${formatCount(totals.downloading, "transfer", "transfers")} downloading${share}`;
}
