/** The view of a running daemon: its status, its metrics, work that hangs, and the console that serves them. */

import { hash } from "node:crypto";
import { access, constants, mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { detailOf, Fault, systemCode, tolerate } from "../base/faults.ts";
import { clearInterval, setInterval } from "../base/timers.ts";
import { readVersion } from "../base/version.ts";
import type { HttpSettings, Settings } from "../config/settings.ts";
import type { Door } from "../console/listen.ts";
import type { ConsolePort } from "../console/port.ts";
import { Sessions, type Tokens } from "../console/sessions.ts";
import { proveOwned } from "../host/socket.ts";
import type { Vitals } from "../host/systemd.ts";
import { isStillListed } from "../mailbox/orders.ts";
import { type Events, listenTo } from "../model/events.ts";
import { isPolled } from "../model/status.ts";
import { mailboxIdOf } from "../model/transfer.ts";
import { Board } from "../observe/board.ts";
import type { Metrics } from "../observe/metrics.ts";
import { Pulse } from "../observe/pulse.ts";
import { describeDaemon, keptIn, readDeliveries, readGone } from "../operate/facts.ts";
import { tallyHistory } from "../operate/history.ts";
import { Local } from "../operate/local.ts";
import type { LiveSettings } from "./live-settings.ts";
import type { Parts } from "./parts.ts";
import type { Waiting } from "./unfinished.ts";

/** The source of a token may be a command, so tokens are read no more often than this. */
const READ_EVERY_MS = 2_000;
/** How long an act waits for the list. Without an answer, it is accepted. */
const LOOKUP_MS = 10_000;
const REFRESH_EVERY_MS = 30_000;
/** Each look for transfers that other processes have ended covers the time since this long before the last look. */
const GONE_OVERLAP_MS = 10 * 60_000;

interface ConsoleTools extends Pick<Parts, "live" | "clock" | "emit"> {
  readonly monitor: Monitor;
  readonly stop: AbortSignal;
  /** The parts of the daemon; `undefined` until they are open, and while a folder is lost that they need. */
  parts(): DaemonParts | undefined;
}

export interface DaemonParts extends Pick<Parts, "inbox" | "queue" | "orders" | "mailboxes"> {
  /** Puts operators' pauses in force at once. Missing until the daemon is ready. */
  applyPauses?: () => Promise<void>;
}

/** Serves commands on the daemon's own socket, and the console, if one is configured, until the scope ends. */
export async function openConsole(tools: ConsoleTools, scope: AsyncDisposableStack): Promise<void> {
  const { live, monitor, clock, emit, stop, parts } = tools;
  const { board, pulse, metrics } = monitor;
  const { http, sockets } = live.now;
  if (http === undefined && sockets.length === 0) return;
  // Loaded only here: most commands need no server.
  const { createConsole } = await import("../console/server.ts");
  const { reportLimits } = await import("../console/callers.ts");
  const { startListening } = await import("../console/listen.ts");
  const onLimited = reportLimits(emit);
  const port: Omit<ConsolePort, "access" | "hosts"> = {
    board,
    metrics: async () => {
      // Without an answer of the disk or the queue, all other figures are shown.
      const ifAnswered = <Value>(figure: Promise<Value> | undefined) => figure?.catch(() => undefined);
      const freeBytes = await ifAnswered(parts()?.inbox.freeBytes());
      const queueDepth = await ifAnswered(parts()?.queue.depth());
      return (await metrics?.text({ freeBytes, queueDepth })) ?? "";
    },
    operate: new Local({
      settings: () => ({ ...live.now, mailboxes: live.configured.mailboxes }),
      stop,
      // The daemon is the owner of the folders.
      asOwner: (_folder, write) => write(),
      isRunning: async () => true,
      mayList: async ({ mailbox, trackingId }) => {
        const state = parts()?.mailboxes.states.get(mailboxIdOf(mailbox));
        if (state === undefined || state.mayList(trackingId) || state.transfers.open.has(trackingId))
          return true;
        // Another process may have polled it since.
        return isStillListed(state, { trackingId, vanished: true }, LOOKUP_MS).catch(() => true);
      },
      runOrders: async () => {
        await parts()?.applyPauses?.();
        await parts()?.orders.run();
      },
      options: { config: describeDaemon(live.now).config },
    }),
    tally: (sinceMs, slotMs, signal) =>
      tallyHistory(live.now.work, { sinceMs, untilMs: clock.now(), slotMs }, signal),
    onLimited,
    stuck: () => pulse.stuck(),
  };
  const onWrong = (from: string) => onLimited("wrong-token", from);
  const serve = (access: ConsolePort["access"], hosts: readonly string[], door: Door) =>
    scope.adopt(startListening(createConsole({ ...port, access, hosts }, clock), door), (close) => close());
  if (sockets.length > 0) {
    // Whoever may open it may act: its owner and root.
    const access = new Sessions({ read: "open", readTokens: undefined, cookie: "own", clock, onWrong });
    serve(access, [], {
      mode: 0o600,
      find: async () => ({ path: await findSafe(sockets) }),
      opened: (address) => emit({ type: "socket-opened", address }),
      failed: (error, reason, address) => {
        const fault = new Fault("SOCKET_UNSAFE", { detail: `${address} (${reason})`, cause: error });
        emit({ type: "socket-failed", fault: error instanceof Fault ? error : fault });
      },
    });
  }
  if (http === undefined) return;
  const access = await openAccess(tools, http, onWrong);
  serve(access, http.hosts, {
    // Owner and group may open the console.
    mode: 0o660,
    find: async () => http.listen,
    opened: (address) => emit({ type: "console-opened", address }),
    failed: (_error, reason, address = "") => emit({ type: "console-failed", address, reason }),
  });
}

/** The first of these paths whose folder only root and this user can change. Makes the folder if it is missing. */
async function findSafe(sockets: readonly string[]): Promise<string> {
  const refused: string[] = [];
  for (const path of sockets) {
    const folder = dirname(path);
    try {
      await mkdir(folder, { mode: 0o700 }).catch(tolerate("EEXIST"));
      await proveOwned(folder);
      await access(folder, constants.W_OK);
      return path;
    } catch (error) {
      refused.push(error instanceof Fault ? detailOf(error) : `${folder} (${systemCode(error)})`);
    }
  }
  throw new Fault("SOCKET_UNSAFE", { detail: refused.join("; ") });
}

/** Who may read and act; `undefined`: everyone may read, and actions are switched off. */
async function openAccess(
  { live, clock, stop }: ConsoleTools,
  http: HttpSettings,
  onWrong: (from: string) => void,
): Promise<Sessions | undefined> {
  // The permissions of a socket file already say who may read.
  const isSocket = "path" in http.listen;
  const needsToken = !isSocket || http.tokens.size > 0;
  const read = needsToken ? (http.read ?? "open") : "open";
  if (!http.actions && read === "open") return undefined;
  // Each daemon has its own cookie, because browsers send the cookies of a host to each of its ports.
  const cookie = hash("sha256", JSON.stringify([hostname(), http.listen, live.now.inbox])).slice(0, 12);
  const readTokens = needsToken ? createTokenReader(live, clock, stop) : undefined;
  await readTokens?.();
  const { protocol, host } = URL.parse(http.publicUrl ?? "") ?? {};
  const secureHost = protocol === "https:" ? host : undefined;
  return new Sessions({ read, readTokens, cookie, secureHost, clock, onWrong });
}

/** Returns a function that reads the tokens from their present sources, unless that was done a moment ago. */
function createTokenReader(live: LiveSettings, clock: Clock, stop: AbortSignal): () => Promise<Tokens> {
  type Sources = HttpSettings["tokens"];
  let last:
    | { readonly sources: Sources; readonly atMs: number; readonly tokens: Promise<Tokens> }
    | undefined;
  return () => {
    const { tokens: sources, actions } = live.now.http ?? { tokens: new Map(), actions: false };
    const atMs = clock.now();
    if (last === undefined || last.sources !== sources || Math.abs(atMs - last.atMs) >= READ_EVERY_MS) {
      last = { sources, atMs, tokens: readTokens(sources, actions, stop) };
    }
    return last.tokens;
  };
}

/** Without `actions`, every token may only read. */
async function readTokens(
  sources: HttpSettings["tokens"],
  actions: boolean,
  stop: AbortSignal,
): Promise<Tokens> {
  const read = [...sources].map(async ([name, { source, role }]) => {
    const token = await source.read(stop);
    return [name, { token, role: actions ? role : "read" }] as const;
  });
  return new Map(await Promise.all(read));
}

/** Fills the board from the disk, and keeps it up to date until the scope ends. A failed look is repeated. */
export async function keepBoardFresh(
  { board, clock, live, expected }: Parts,
  readWaiting: () => Promise<Waiting>,
  scope: AsyncDisposableStack,
): Promise<void> {
  const settings = live.now;
  // Other processes change transfers, and their events are not known here.
  const isShared = settings.queue !== "embedded";
  let hasReadAll = false;
  let recalledMs: number | undefined;
  /** At first for the default time, then since the last look. */
  const recallGone = async () => {
    const nowMs = clock.now();
    const spanMs = recalledMs === undefined ? undefined : nowMs - recalledMs + GONE_OVERLAP_MS;
    board.recall([], await readGone(settings, nowMs, spanMs));
    recalledMs = nowMs;
  };
  const learnWaiting = async () => {
    const waiting = await readWaiting();
    board.learn(waiting.records);
    hasReadAll = waiting.isWhole;
  };
  const refresh = async () => {
    if (isShared || !hasReadAll) await learnWaiting();
    if (isShared || recalledMs === undefined) await recallGone();
    await expected.refresh();
  };
  // After the loss of a disk.
  board.reopen();
  // Times of earlier deliveries, only to be shown.
  board.recall(await readDeliveries(settings.work).catch(() => []), []);
  // The timer repeats it, and a failing disk is reported elsewhere.
  await learnWaiting().catch(() => {});
  // One at a time: an older answer of the disk must not replace a newer one.
  const refreshes = new Coalesced(refresh);
  // The timer repeats a look that fails.
  const look = () => void (refreshes.isIdle && refreshes.run().catch(() => {}));
  scope.adopt(setInterval(look, REFRESH_EVERY_MS), clearInterval);
  // Not awaited: a day of the journal may be long.
  look();
}

export type Monitor = Awaited<ReturnType<typeof createMonitor>>;

/** Subscribes to the events at once. Without a console, which would serve them, there are no metrics. */
export async function createMonitor(settings: Settings, hasConsole: boolean, clock: Clock, events: Events) {
  const board = new Board(describeDaemon(settings), settings.mailboxes, clock, keptIn(settings.work));
  const pulse = new Pulse();
  let isStarted = false;
  const metrics = hasConsole ? await loadMetrics(settings, board, clock) : undefined;
  if (metrics !== undefined) events.subscribe(metrics.listener);
  events.subscribe(pulse.listener);
  const ready = () => {
    isStarted = true;
  };
  events.subscribe(listenTo({ ready }));
  // Last: its subscribers ask whether the daemon is ready.
  events.subscribe(board.listener);
  const vitals: Vitals = {
    status: () => board.read(),
    isReady: () => isStarted && isPolled(board.read()),
    stuck: () => pulse.stuck(),
    onChange: (subscriber) => board.onChange(subscriber),
  };
  return { board, pulse, metrics, vitals };
}

async function loadMetrics({ mailboxes }: Settings, board: Board, clock: Clock): Promise<Metrics> {
  const { Metrics } = await import("../observe/metrics.ts");
  return new Metrics(mailboxes, readVersion(), () => board.read(), clock);
}
