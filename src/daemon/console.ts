/** The console: its server, and the regular refresh of the status that it shows. */

import type { Clock } from "../base/clock.ts";
import type { Scope } from "../base/scope.ts";
import { clearInterval, setInterval } from "../base/timers.ts";
import type { ConsolePort } from "../console/port.ts";
import type { Inbox } from "../inbox/port.ts";
import { readActs, tallyHistory } from "../ledger/history.ts";
import { type PeekedFolders, peekLedger } from "../ledger/peek.ts";
import type { OnDamaged } from "../ledger/port.ts";
import type { Emit } from "../model/events.ts";
import type { Board } from "../observe/board.ts";
import type { JobQueue } from "../queue/port.ts";
import { objectionToAct, selectActable } from "./acts.ts";
import { actToolsOf, openActions } from "./console-actions.ts";
import { describeDaemon, readDeliveries, readGone, readJournalPage, readPast } from "./facts.ts";
import type { LiveSettings } from "./live-settings.ts";
import type { Monitor } from "./monitor.ts";
import type { OrderRunner } from "./orders.ts";
import { readStory } from "./story.ts";
import { listTransfers, selectTransfers } from "./transfers.ts";
import type { Waiting } from "./unfinished.ts";

const REFRESH_EVERY_MS = 30_000;
/** Transfers that other processes have ended are looked for this much further back than the last look. */
const GONE_LATELY_MS = 10 * 60_000;
/** Entries of the journal that a search shows. */
const MAX_FOUND = 100;

interface ConsoleTools {
  readonly live: LiveSettings;
  readonly monitor: Monitor;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly stop: AbortSignal;
  /** The parts of the daemon that are open; `undefined` while a folder is lost that they need. */
  parts(): DaemonParts | undefined;
}

export interface DaemonParts {
  readonly inbox: Inbox;
  readonly queue: JobQueue;
  readonly orders: OrderRunner;
}

/** Serves the console, if one is configured, until the scope ends. */
export async function openConsole(tools: ConsoleTools, scope: Scope): Promise<void> {
  const { live, monitor, clock, emit, stop, parts } = tools;
  const { board, pulse, metrics } = monitor;
  const { http, work, inbox: root } = live.now;
  const folders = { work, inbox: root };
  if (http === undefined) return;
  // Loaded only here: most commands need no server.
  const { createConsole } = await import("../console/server.ts");
  const { startListening } = await import("../console/listen.ts");
  const port: ConsolePort = {
    board,
    metrics: async () => {
      // A disk or a queue that does not answer leaves all other figures in place.
      const ifAnswered = <Value>(figure: Promise<Value> | undefined) => figure?.catch(() => undefined);
      const freeBytes = await ifAnswered(parts()?.inbox.freeBytes());
      const queueDepth = await ifAnswered(parts()?.queue.depth());
      return (await metrics?.text({ freeBytes, queueDepth })) ?? "";
    },
    journal: {
      search: ({ limit = MAX_FOUND, ...query }, signal) => readPast(work, { ...query, limit }, signal),
      acts: ({ sinceMs, limit = MAX_FOUND }, signal) =>
        // `inlet history` reports damaged lines.
        Array.fromAsync(readActs(work, { sinceMs, limit }, () => {}, signal)),
      page: (kind, query, signal) => readJournalPage(work, kind, query, signal),
      tally: (sinceMs, slotMs, signal) =>
        tallyHistory(work, { sinceMs, untilMs: clock.now(), slotMs }, signal),
    },
    list: (query, signal) => {
      const { act } = query;
      const select = (onDamaged: OnDamaged) =>
        act === undefined
          ? selectTransfers(peekLedger(folders), query, onDamaged, signal)
          : selectActable(actToolsOf(live), query, act, onDamaged, signal);
      return listTransfers(peekLedger(folders), live.now.mailboxes, select, query);
    },
    objection: async (act, key) =>
      (await objectionToAct(actToolsOf(live), act, await peekLedger(folders).find(key)))?.detail,
    story: (key) => readStory(folders, key, live.now.mailboxes, { config: describeDaemon(live.now).config }),
    actions: await openActions(live, clock, stop, async () => parts()?.orders.run()),
    hosts: http.hosts,
    stuck: () => pulse.stuck(),
  };
  scope.use(startListening(createConsole(port, clock), http.listen, emit), (close) => close());
}

interface RefreshTools {
  readonly board: Board;
  readonly folders: PeekedFolders;
  readonly clock: Clock;
  /** Other processes change transfers, and their events are not known here. */
  readonly isShared: boolean;
  readWaiting(): Promise<Waiting>;
  /** Learns which expected transfers other processes have seen. */
  learnArrivals(): Promise<void>;
}

/** Fills the board from the disk, and keeps it up to date until the scope ends. What fails is tried again. */
export async function keepBoardFresh(tools: RefreshTools, scope: Scope): Promise<void> {
  const { board, folders, clock, isShared, readWaiting, learnArrivals } = tools;
  let isWhole = false;
  let goneMs: number | undefined;
  const recallGone = async () => {
    const nowMs = clock.now();
    const spanMs = goneMs === undefined ? undefined : nowMs - goneMs + GONE_LATELY_MS;
    board.recall([], await readGone(folders, nowMs, spanMs));
    goneMs = nowMs;
  };
  const learnWaiting = async () => {
    const waiting = await readWaiting();
    board.learn(waiting.records);
    isWhole = waiting.isWhole;
  };
  const refresh = async () => {
    if (isShared || !isWhole) await learnWaiting();
    if (isShared || goneMs === undefined) await recallGone();
    await learnArrivals();
  };
  // Times of earlier deliveries, only to be shown.
  board.recall(await readDeliveries(folders.work).catch(() => []), []);
  // The timer below repeats what fails, and a failing disk is a trouble of its own.
  await learnWaiting().catch(() => {});
  // Not awaited: a day of the journal may be long. Repeated too.
  void recallGone().catch(() => {});
  // Repeated.
  const timer = setInterval(() => void refresh().catch(() => {}), REFRESH_EVERY_MS);
  scope.use(timer, clearInterval);
}
