/** The life of the daemon: it opens its parts in order, works, waits, and closes them in reverse. */

import { join } from "node:path";
import { type Clock, systemClock } from "./base/clock.ts";
import { Mutex } from "./base/concurrency.ts";
import { whenAborted } from "./base/deadline.ts";
import { asFault, Fault } from "./base/faults.ts";
import { closeDisks } from "./base/machine.ts";
import { Outage } from "./base/outage.ts";
import { pause } from "./base/timers.ts";
import type { Settings } from "./config/settings.ts";
import {
  createMonitor,
  type DaemonParts,
  keepBoardFresh,
  type Monitor,
  openConsole,
} from "./daemon/console.ts";
import { FolderWatch, mayRecover } from "./daemon/folder-watch.ts";
import { createHandlers, type DaemonHandlers } from "./daemon/handlers.ts";
import { announce, recover, startHousekeeping, sweep } from "./daemon/housekeeping.ts";
import { LiveSettings } from "./daemon/live-settings.ts";
import { openMailboxes } from "./daemon/mailboxes.ts";
import { startOrderRunner } from "./daemon/orders.ts";
import {
  type DaemonPatience,
  journalNotices,
  openDaemonHandoffs,
  openEngine,
  openNotifier,
  type Parts,
} from "./daemon/parts.ts";
import { watchPromises } from "./daemon/promises.ts";
import {
  applySettings,
  followPauses,
  journalSettings,
  putRecordsInForce,
  schedulePolls,
  withGroups,
} from "./daemon/reload.ts";
import {
  finishJobs,
  noteUnfinished,
  readUnfinished,
  resumeComplete,
  type Waiting,
  watchPasswords,
} from "./daemon/unfinished.ts";
import { openWorkspace, type Workspace } from "./daemon/workspace.ts";
import { loadTokenStores } from "./host/memory.ts";
import type { Host } from "./host/systemd.ts";
import { memberId } from "./inbox/members.ts";
import type { KnownFolders } from "./inbox/work-folder.ts";
import type { Pauses } from "./ledger/pauses.ts";
import { openExpected } from "./mailbox/expected.ts";
import { type Emit, Events } from "./model/events.ts";
import { mailboxIdOf } from "./model/transfer.ts";
import type { Notifier } from "./notify/notifier.ts";
import type { openQueue } from "./queue/engine.ts";
import { openService } from "./service/service.ts";
import type { Patience } from "./transfer/run.ts";

export interface DaemonOptions {
  /** `once`: polls every mailbox once, downloads the open transfers, and returns. */
  readonly mode: "run" | "once";
  /** Stops the daemon. Running work has `graceMs` to end. */
  readonly stop: AbortSignal;
  readonly graceMs: number;
  readonly onEvent: Emit;
  readonly clock?: Clock;
  readonly patience?: Patience & DaemonPatience;
  /** How services and the queue are reached. */
  readonly openService?: typeof openService;
  readonly openQueue?: typeof openQueue;
  /** Where verification tokens are kept. */
  readonly loadTokenStores?: typeof loadTokenStores;
  /** The service manager, which is notified of the daemon's status. */
  readonly host?: Host | undefined;
  /** Watches the configuration, and passes on new settings, or why they are refused. */
  readonly follow?: (
    apply: (next: Settings) => Promise<void>,
    refused: (fault: Fault) => void,
  ) => Promise<{ close(): Promise<void> }>;
}

export interface DaemonOutcome {
  readonly failedPolls: number;
  /** How many transfers are open, quarantined, rejected by a poll, or not handed over. */
  readonly unsettled: number;
}

const PATIENCE: Patience = { retryMs: 5_000, diskMs: 30_000, lockedMs: 15 * 60_000, slowMs: 2 * 60_000 };

/** The options, and the parts that outlive a loss of the disk. */
interface StartOptions extends DaemonOptions {
  readonly live: LiveSettings;
  readonly clock: Clock;
  readonly patience: NonNullable<DaemonOptions["patience"]>;
  readonly events: Events;
  readonly monitor: Monitor;
  /** Identifies this process. */
  readonly process: string;
  readonly notifier: Notifier;
  readonly diskTrouble: Outage;
  readonly opened: Opened;
  /** May be called twice. */
  showConsole(): Promise<void>;
}

interface Opened {
  /** The folders when this process opened them last. Missing before the first start has succeeded. */
  folders?: KnownFolders;
  /** Missing while the parts are closed. */
  parts?: DaemonParts | undefined;
}

/**
 * In mode `run`, the daemon closes its parts if its disk is lost, and opens them again when the disk is back. A start without
 * the disk waits in the same way.
 */
export async function runDaemon(settings: Settings, options: DaemonOptions): Promise<DaemonOutcome> {
  const { stop, mode, clock = systemClock, patience = PATIENCE } = options;
  const events = new Events();
  events.subscribe(options.onEvent);
  const monitor = await createMonitor(settings, mode === "run" && settings.http !== undefined, clock, events);
  const diskTrouble = new Outage(clock, {
    began: (fault) => events.emit({ type: "disk-failed", fault }),
    ended: (lastedMs) => events.emit({ type: "disk-recovered", pausedForMs: lastedMs }),
  });
  await using scope = new AsyncDisposableStack();
  scope.adopt(undefined, () => closeDisks(undefined));
  scope.adopt(options.host?.startReporting(monitor.vitals, stop), (it) => it?.close());
  const live = new LiveSettings(settings);
  const process = memberId();
  const notifier = openNotifier(live, { clock, events, stop }, process, options.patience?.notify);
  scope.adopt(notifier, (it) => it.close());
  const opened: Opened = {};
  const consoleTools = { live, monitor, clock, emit: events.emit, stop, parts: () => opened.parts };
  let shown: Promise<void> | undefined;
  const showConsole = () => (shown ??= openConsole(consoleTools, scope));
  const lasting = { live, clock, patience, events, monitor, process, notifier, diskTrouble, opened };
  for (;;) {
    const outcome = await attempt({ ...options, ...lasting, showConsole });
    if (!(outcome instanceof Fault)) {
      if (mode === "once") await notifier.finish();
      return outcome;
    }
    opened.parts = undefined;
    notifier.release();
    if (outcome.code !== "DISK_FULL") closeDisks(outcome);
    await notifier.start();
    await showConsole();
    diskTrouble.add(settings.work, outcome);
    // Cut short by a stop, which the next attempt finds.
    await pause(patience.diskMs, stop).catch(() => {});
  }
}

/** Returns the fault of the disk if another attempt has to follow. */
async function attempt(options: StartOptions): Promise<DaemonOutcome | Fault> {
  const { mode, stop, opened } = options;
  try {
    return await openAndRun(options);
  } catch (error) {
    // The original failure counts, not the one that closing caused.
    const cause: unknown = error instanceof SuppressedError ? error.suppressed : error;
    const fault = asFault(cause);
    if (mode === "once") throw fault;
    const isRecoverable = mayRecover(fault, opened.folders !== undefined);
    const isStopped = fault.code === "STOPPED" || (isRecoverable && stop.aborted);
    if (isStopped) return { failedPolls: 0, unsettled: 0 };
    if (!isRecoverable) throw fault;
    return fault;
  }
}

/** Throws the fault of a folder that was lost. */
async function openAndRun(options: StartOptions): Promise<DaemonOutcome> {
  const { mode, live, clock, events, process, diskTrouble, patience, opened } = options;
  await using scope = new AsyncDisposableStack();
  const known = opened.folders;
  if (known === undefined) live.replace(await withGroups(live.configured, options.stop));
  const workspace = await openWorkspace(live, scope, { emit: events.emit, clock, process, known });
  opened.folders = workspace.folders;
  await putRecordsInForce(live, events.emit);
  const watch = new FolderWatch(workspace.folders, live, diskTrouble);
  if (mode === "run") watch.start(scope, patience.lookMs);
  try {
    const stop = AbortSignal.any([options.stop, watch.signal]);
    const emit = mode === "run" ? watch.filter(events.emit) : events.emit;
    return await runInWorkspace({ ...options, stop }, workspace, watch, emit);
  } catch (error) {
    throw watch.signal.aborted ? watch.signal.reason : error;
  }
}

/** Opens the parts in the workspace, and lets them work. */
async function runInWorkspace(
  options: StartOptions,
  { ledger, inbox, passwords, membership }: Workspace,
  watch: FolderWatch,
  emit: Emit,
): Promise<DaemonOutcome> {
  const { mode, stop, live, clock, patience, events, monitor, notifier, diskTrouble } = options;
  const settings = live.now;
  await using scope = new AsyncDisposableStack();
  scope.adopt(events.subscribe(journalSettings(ledger, settings.source)), (unsubscribe) => unsubscribe());
  scope.adopt(journalNotices(notifier, ledger), (detach) => detach());
  await notifier.start();
  await notifier.apply(settings);
  const serviceTools = {
    clock,
    emit,
    stop,
    facts: ledger.services,
    openService: options.openService ?? openService,
    loadTokenStores: options.loadTokenStores ?? loadTokenStores,
  };
  const mailboxes = await openMailboxes(live, scope, serviceTools);
  const { states, isClockRight } = mailboxes;
  const reported = new Set<string>();
  const onDamaged = (path: string, reason: string) => {
    if (!reported.has(path)) emit({ type: "record-damaged", path, reason });
    reported.add(path);
  };
  const placed = await recover({ ledger, emit });
  await inbox.clearAsides((error) => emit({ type: "recovery-failed", fault: asFault(error) }));
  noteUnfinished(await Array.fromAsync(ledger.open(onDamaged)), states);
  // The status recalls ends from the journal, also those that a crash kept out of it.
  await ledger.flush();
  const folder = join(settings.work, "expected");
  const expected = await openExpected({ folder, ledger, clock, emit }, settings.mailboxes);
  scope.adopt(expected, (it) => it.close());
  scope.adopt(events.subscribe(expected.listener), (unsubscribe) => unsubscribe());
  const handoffTools = { ledger, inbox, clock, emit, stop, isClockRight };
  const handoffs = await openDaemonHandoffs(live, handoffTools, patience.handoff);
  scope.adopt(handoffs, (it) => it.close());
  const queue = scope.adopt(await openEngine(live, options, scope), (it) =>
    it.close(watch.signal.aborted ? 0 : options.graceMs),
  );
  const isShared = settings.queue !== "embedded";
  const { work } = settings;
  const orderTools = { work, isShared, ledger, inbox, passwords, queue, handoffs, clock, diskTrouble, emit };
  const orders = await startOrderRunner(orderTools, states, events, scope);
  const { board, pulse } = monitor;
  const demandFolders = async () => (mode === "run" ? watch.demand() : undefined);
  const stores = { inbox, ledger, passwords, mailboxes, expected, handoffs, queue, orders };
  const parts: Parts = { ...stores, live, clock, emit, board, diskTrouble, notifier, demandFolders };
  const handlers = createHandlers(parts, { mode, patience, pulse, lost: watch.signal });
  // Both are repeated until every record could be read.
  let mustReview = true;
  let mustResume = false;
  const readWaiting = async (): Promise<Waiting> => {
    const unfinished = await readUnfinished(parts);
    // Other processes, and orders, may have begun more rounds.
    unfinished.apply(states);
    let { records, isWhole } = unfinished;
    const quarantined = ledger.quarantined((path, reason) => {
      isWhole = false;
      onDamaged(path, reason);
    });
    records = [...records, ...(await Array.fromAsync(quarantined))];
    if (mustReview) notifier.review(records);
    mustReview = !isWhole;
    if (mustResume) mustResume = !(await resumeComplete(parts));
    return { records, isWhole };
  };
  // A failure changes nothing: the end of the run counts what waits.
  if (mode === "once") await readWaiting().catch(() => {});
  else {
    await keepBoardFresh(parts, readWaiting, scope);
    options.opened.parts = parts;
    await options.showConsole();
  }

  announce(placed, parts);
  // The trouble of an earlier attempt ends if there is room enough.
  await demandFolders();
  await queue.start(handlers);
  scope.adopt(await watchPasswords(parts), (it) => it.close());
  const ordered = orders.run();
  // A daemon need not wait for a service that is asked about a transfer.
  if (mode === "once") await ordered;
  mustResume = !(await resumeComplete(parts));
  if (mode === "once") await workOnce(parts, handlers, stop);
  else {
    handoffs.start();
    startHousekeeping(parts, scope);
    // Emits past the filter of the folders' watch, which waits for the disk.
    watchPromises(parts, membership, events, scope);
    await schedulePolls(queue, settings);
    emit({ type: "ready" });
    await followChanges(parts, options, scope);
    await whenAborted(stop);
    watch.signal.throwIfAborted();
  }
  return await settle(parts, handlers.failedPolls);
}

/** Polls every mailbox, and finishes all that can be finished now. */
async function workOnce(
  parts: Parts,
  { skipped }: Pick<DaemonHandlers, "skipped">,
  stop: AbortSignal,
): Promise<void> {
  const { live, queue, handoffs, emit } = parts;
  emit({ type: "ready" });
  const active = live.now.mailboxes.filter((mailbox) => !mailbox.paused);
  const ids = new Set(active.map(({ name }) => mailboxIdOf(name)));
  const work = async () => {
    for (const mailbox of await queue.pollOnce([...ids])) skipped(mailbox);
    await finishJobs(parts, ids, stop);
    await handoffs.finish();
  };
  await Promise.race([work(), whenAborted(stop)]);
  if (!stop.aborted) await sweep(parts);
}

/** Applies changes of the configuration and of operators' pauses, one after the other, until the scope ends. */
async function followChanges(
  parts: Parts,
  options: StartOptions,
  scope: AsyncDisposableStack,
): Promise<void> {
  const { live, emit, notifier, demandFolders } = parts;
  const reloads = new Mutex();
  const apply = (read: () => Promise<Settings>, pauses?: Pauses) =>
    reloads.run(async () => {
      await demandFolders();
      await applySettings(parts, await read(), pauses);
      await notifier.apply(live.now);
    });
  const applyPauses = (pauses: Pauses) => apply(async () => live.configured, pauses);
  options.opened.parts = { ...parts, applyPauses: await followPauses(live, applyPauses, emit, scope) };
  const follower = await options.follow?.(
    (next) => apply(() => withGroups(next, options.stop)),
    (fault) => emit({ type: "settings-refused", fault }),
  );
  scope.adopt(follower, (it) => it?.close());
}

/** Finishes what this process can still place, and counts what needs a person or another run. */
async function settle(parts: Parts, failedPolls: () => number): Promise<DaemonOutcome> {
  const { ledger, mailboxes, handoffs } = parts;
  await ledger.flush();
  let unplaced = 0;
  announce(await recover(parts, () => unplaced++), parts);
  let unreadable = 0;
  const unfinished = await Array.fromAsync(ledger.open(() => unreadable++));
  const quarantined = await Array.fromAsync(ledger.quarantined(() => unreadable++));
  const unusable = [...mailboxes.states.values()].reduce((sum, { health }) => sum + health.unusable, 0);
  return {
    failedPolls: failedPolls(),
    unsettled: unfinished.length + unreadable + unplaced + quarantined.length + unusable + handoffs.failing(),
  };
}
