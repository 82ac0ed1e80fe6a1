/** The life of the daemon: it opens its parts in order, works, waits, and closes them in reverse. */

import { join } from "node:path";
import { type Clock, systemClock } from "./base/clock.ts";
import { type DeadlineLimits, whenAborted } from "./base/deadline.ts";
import { faultOfDisk } from "./base/durable.ts";
import { asFault, type Fault } from "./base/faults.ts";
import { Outage } from "./base/outage.ts";
import { random } from "./base/random.ts";
import { Scope } from "./base/scope.ts";
import { clearInterval, pause, setInterval } from "./base/timers.ts";
import type { Settings } from "./config/settings.ts";
import { keepBoardFresh, openConsole } from "./daemon/console.ts";
import { withGroups } from "./daemon/groups.ts";
import { createHandlers, type JobTools } from "./daemon/handlers.ts";
import { HANDOFF_PATIENCE, openDaemonHandoffs } from "./daemon/handoff.ts";
import { announce, finishDeliveries, startHousekeeping, sweep } from "./daemon/housekeeping.ts";
import { LiveSettings } from "./daemon/live-settings.ts";
import { openMailboxes } from "./daemon/mailboxes.ts";
import { createMonitor, type Monitor } from "./daemon/monitor.ts";
import { type DaemonNotifier, openNotifier } from "./daemon/notify.ts";
import { startOrderRunner } from "./daemon/orders.ts";
import { applySettings, schedulePolls } from "./daemon/reload.ts";
import { journalSettings } from "./daemon/settings-journal.ts";
import { readUnfinished } from "./daemon/unfinished.ts";
import { openWorkspace } from "./daemon/workspace.ts";
import { createChecker } from "./handoff/content-check.ts";
import type { HandoffPatience } from "./handoff/port.ts";
import type { Host } from "./host/systemd.ts";
import type { Ledger } from "./ledger/port.ts";
import { openExpected } from "./mailbox/expected.ts";
import type { MailboxState } from "./mailbox/state.ts";
import { jobOf, type PollTools } from "./mailbox/tools.ts";
import { recoverFromCrash, reportOnce } from "./mailbox/unfinished.ts";
import { type Emit, Events } from "./model/events.ts";
import { expiryOf, hasEnded } from "./model/record.ts";
import { type MailboxId, mailboxIdOf } from "./model/transfer.ts";
import type { NotifyPatience } from "./notify/channel.ts";
import { watchDropFolder } from "./passwords/dropped.ts";
import { openQueue } from "./queue/open.ts";
import type { JobQueue } from "./queue/port.ts";
import { openService } from "./service/open.ts";
import { LargeTransfers } from "./transfer/large.ts";
import type { Patience, TransferTools } from "./transfer/tools.ts";

export interface DaemonOptions {
  /** `once`: polls every mailbox once, downloads the open transfers, and returns. */
  readonly mode: "run" | "once";
  /** Stops the daemon. Running work has `graceMs` to end. */
  readonly stop: AbortSignal;
  readonly graceMs: number;
  readonly onEvent: Emit;
  readonly clock?: Clock;
  readonly patience?: Patience & {
    readonly handoff?: Partial<HandoffPatience>;
    readonly notify?: Partial<NotifyPatience>;
    readonly poll?: DeadlineLimits | undefined;
  };
  /** How services and the queue are reached. */
  readonly openService?: typeof openService;
  readonly openQueue?: typeof openQueue;
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

/** How often to look for transfers whose process died before it queued their job. Only with a shared queue. */
const REFRESH_EVERY_MS = 10 * 60_000;

/** The start's own key in `diskFull`, beside those of transfers and mailboxes. */
const START = "start";

/** Long lists take time. The total is below the watchdog's limit for hanging work. */
const POLL_DEADLINE: DeadlineLimits = { stallMs: 10 * 60_000, totalMs: 25 * 60_000 };

const PATIENCE: Patience = { retryMs: 5_000, diskMs: 30_000, lockedMs: 15 * 60_000, slowMs: 2 * 60_000 };

/** The options, and the parts that every attempt to start uses: a start that fails on a full disk is repeated. */
interface StartOptions extends DaemonOptions {
  readonly clock: Clock;
  readonly patience: NonNullable<DaemonOptions["patience"]>;
  readonly events: Events;
  readonly monitor: Monitor;
  readonly notifier: DaemonNotifier;
  readonly diskFull: Outage;
}

/** In mode `run`, a start that fails on a full disk is repeated until there is room. */
export async function runDaemon(settings: Settings, options: DaemonOptions): Promise<DaemonOutcome> {
  const { stop, mode, clock = systemClock, patience = PATIENCE } = options;
  const events = new Events();
  events.subscribe(options.onEvent);
  const monitor = await createMonitor(settings, mode === "run" && settings.http !== undefined, clock, events);
  const diskFull = new Outage(clock, {
    began: (fault) => events.emit({ type: "disk-full", fault }),
    ended: (lastedMs) => events.emit({ type: "disk-has-room", pausedForMs: lastedMs }),
  });
  await using scope = new Scope();
  scope.use(options.host?.startReporting(monitor.vitals, stop), (it) => it?.close());
  const notifier = openNotifier(settings, { clock, events, stop, patience: options.patience?.notify });
  scope.use(notifier, (it) => it.close());
  for (;;) {
    try {
      const parts = { clock, patience, events, monitor, notifier, diskFull };
      const outcome = await openAndRun(settings, { ...options, ...parts });
      if (mode === "once") await notifier.finish();
      return outcome;
    } catch (error) {
      // The original failure counts, not the one that closing caused.
      const cause: unknown = error instanceof SuppressedError ? error.suppressed : error;
      const fault = asFault(faultOfDisk(cause, settings.inbox));
      if (mode === "run" && fault.code === "STOPPED") return { failedPolls: 0, unsettled: 0 };
      if (mode === "once" || fault.code !== "DISK_FULL" || stop.aborted) throw fault;
      await notifier.start();
      diskFull.add(START, fault);
      await pause(patience.diskMs, stop).catch(() => {});
    }
  }
}

async function openAndRun(given: Settings, options: StartOptions): Promise<DaemonOutcome> {
  const { mode, stop, clock, patience, events, monitor, notifier, diskFull } = options;
  const settings = await withGroups(given, stop);
  const { emit } = events;
  await using scope = new Scope();

  const live = new LiveSettings(settings);
  const workspace = await openWorkspace(live, scope, { emit, clock, process: notifier.process });
  const { ledger, inbox, passwords } = workspace;
  scope.use(events.subscribe(journalSettings(ledger, settings.source)), (unsubscribe) => unsubscribe());
  scope.use(notifier.attach(ledger), (detach) => detach());
  await notifier.start();
  const mailboxes = await openMailboxes(settings, scope, {
    clock,
    emit,
    stop,
    openService: options.openService ?? openService,
  });
  const { states, isClockRight } = mailboxes;
  const placed = await recoverFromCrash(inbox, ledger, states, emit);
  // The status recalls ends from the journal, also those that a crash kept out of it.
  await ledger.flush();
  const expected = await openExpected(
    { folder: join(settings.work, "expected"), ledger, clock, emit },
    settings.mailboxes,
  );
  scope.use(expected, (it) => it.close());
  scope.use(events.subscribe(expected.listener), (unsubscribe) => unsubscribe());
  const handoffs = scope.use(
    await openDaemonHandoffs(live, {
      ledger,
      inbox,
      clock,
      emit,
      stop,
      patience: patience.handoff,
      isClockRight,
    }),
    (it) => it.close(),
  );
  const queue = scope.use(await openEngine(live, options), (it) => it.close(options.graceMs));
  const handlers = createHandlers({
    live,
    mailboxes: states,
    expected,
    poll: pollTools(options, settings, { ledger, passwords, queue }),
    transfer: transferTools(options, settings, { inbox, ledger, passwords, handoffs }, queue),
    pulse: monitor.pulse,
    clock,
  });
  const isShared = settings.queue !== "embedded";
  const orders = scope.use(
    await startOrderRunner(
      { work: settings.work, isShared, ledger, inbox, passwords, queue, handoffs, clock, diskFull, emit },
      states,
    ),
    (it) => it.close(),
  );
  const refreshUnfinished = async () => {
    const unfinished = await readUnfinished({ ledger, inbox, diskFull });
    unfinished.apply(states);
    return unfinished.records;
  };
  const onDamaged = reportOnce((path, reason) => emit({ type: "record-damaged", path, reason }));
  let isReviewed = false;
  const readWaiting = async () => {
    const quarantined = await Array.fromAsync(ledger.quarantined(onDamaged));
    const records = [...(await refreshUnfinished()), ...quarantined];
    if (!isReviewed) notifier.review(records);
    isReviewed = true;
    return records;
  };
  if (mode === "once") await readWaiting().catch(() => {});
  else {
    await keepBoardFresh(
      {
        board: monitor.board,
        folders: settings,
        clock,
        isShared,
        readUnfinished: readWaiting,
        learnArrivals: () => expected.refresh(),
      },
      scope,
    );
    const parts = { live, monitor, inbox, queue, clock, emit, stop };
    await openConsole({ ...parts, runOrders: () => orders.run() }, scope);
  }

  await announce(placed, handoffs, emit);
  diskFull.clear(START);
  await queue.start(handlers);
  scope.use(await watchPasswords(settings, { ledger, queue }, states, emit), (it) => it.close());
  await orders.run();
  await resumeComplete(ledger, queue);
  const housekeeping = { live, ledger, mailboxes: states, passwords, handoffs, emit, isClockRight };
  if (mode === "once") {
    emit({ type: "ready" });
    const work = async () => {
      const active = settings.mailboxes.filter((mailbox) => !mailbox.paused);
      await queue.pollNow(active.map(({ name }) => mailboxIdOf(name)));
      await queue.idle();
      await handoffs.finish();
    };
    await Promise.race([work(), whenAborted(stop)]);
    if (!stop.aborted) await sweep(housekeeping);
  } else {
    handoffs.start();
    startHousekeeping(housekeeping, scope);
    if (isShared) {
      const timer = setInterval(() => void refreshUnfinished().catch(() => {}), REFRESH_EVERY_MS);
      scope.use(timer, clearInterval);
    }
    await schedulePolls(queue, settings);
    emit({ type: "ready" });
    const reload = { live, mailboxes, expected, ledger, inbox, diskFull, queue, clock, emit };
    const follower = await options.follow?.(
      async (next) => {
        await applySettings(reload, await withGroups(next, stop));
        await notifier.apply(next);
      },
      (fault) => emit({ type: "settings-refused", fault }),
    );
    scope.use(follower, (it) => it?.close());
    await whenAborted(stop);
  }

  await ledger.flush();
  let unplaced = 0;
  await finishDeliveries(housekeeping, () => unplaced++);
  const unfinished = await Array.fromAsync(ledger.open(() => {}));
  const quarantined = await Array.fromAsync(ledger.quarantined(() => {}));
  const unusable = [...states.values()].reduce((sum, { health }) => sum + health.unusable, 0);
  return {
    failedPolls: handlers.failedPolls(),
    unsettled: unfinished.length + unplaced + quarantined.length + unusable + handoffs.failing(),
  };
}

/** Queues transfers whose content is complete: they need no poll, and the service may no longer list them. */
async function resumeComplete(ledger: Ledger, queue: JobQueue): Promise<void> {
  for await (const record of ledger.open(() => {})) {
    const { complete, mailbox, trackingId } = record;
    if (complete !== undefined) await queue.add(jobOf(ledger, mailbox, trackingId, expiryOf(record)));
  }
}

function openEngine(live: LiveSettings, options: StartOptions): Promise<JobQueue> {
  const { mode, stop, clock, events } = options;
  const { queue, limits } = live.now;
  return (options.openQueue ?? openQueue)(queue, {
    slots: limits.transfers,
    mode,
    services: live.services,
    mayFreeSlots: () => live.now.mailboxes.some(({ check }) => check !== undefined),
    outage: new Outage(clock, {
      began: (fault) => events.emit({ type: "queue-lost", fault }),
      changed: (fault) => events.emit({ type: "queue-lost", fault }),
      ended: (lastedMs) => events.emit({ type: "queue-back", lostForMs: lastedMs }),
    }),
    onValueRemoved: (key) => events.emit({ type: "queue-value-removed", key }),
    onEvicting: (policy) => events.emit({ type: "queue-evicts", policy }),
    signal: stop,
  });
}

function pollTools(
  { clock, events, diskFull, patience }: StartOptions,
  { limits }: Settings,
  stores: Pick<PollTools, "ledger" | "passwords" | "queue">,
): PollTools {
  const deadline = patience.poll ?? POLL_DEADLINE;
  return { ...stores, clock, emit: events.emit, diskFull, atOnce: limits.transfers, deadline };
}

function transferTools(
  { clock, events, diskFull, patience, mode }: StartOptions,
  { limits }: Settings,
  stores: Pick<TransferTools, "inbox" | "ledger" | "passwords" | "handoffs">,
  queue: JobQueue,
): Omit<TransferTools, JobTools> {
  // Not under our own bandwidth limit, where every download is slow, and not in `once`, which would end before a paused
  // download continues.
  const mayGiveWay = mode === "run" && (limits.bandwidth ?? []).length === 0;
  return {
    ...stores,
    checker: createChecker({ ...HANDOFF_PATIENCE, ...patience.handoff }),
    clock,
    random,
    patience,
    diskFull,
    large: new LargeTransfers(),
    othersWait: async () => mayGiveWay && ((await queue.depth()) ?? 0) > 0,
    emit: events.emit,
  };
}

/** A transfer whose password is supplied is downloaded at once. */
function watchPasswords(
  { state }: Settings,
  { ledger, queue }: { readonly ledger: Ledger; readonly queue: JobQueue },
  mailboxes: ReadonlyMap<MailboxId, MailboxState>,
  emit: Emit,
) {
  const downloadNow = async (mailbox: string, trackingId: string, expiresMs: number) => {
    const record = await ledger.find({ mailbox, trackingId });
    if (record === undefined || hasEnded(record)) return;
    ledger.note({ ...record, wanted: true });
    await ledger.flush();
    await queue.runNow(jobOf(ledger, mailbox, trackingId, expiresMs));
  };
  return watchDropFolder(
    state,
    (trackingId) => {
      for (const [id, { transfers }] of mailboxes) {
        const expiresMs = transfers.expiryOf(trackingId);
        // If Redis is away, the next poll finds the password.
        if (expiresMs !== undefined) downloadNow(id, trackingId, expiresMs).catch(() => {});
      }
    },
    (fault) => emit({ type: "folder-unwatchable", fault }),
  );
}
