/** The whole life of the daemon: open in order, work, wait, close in reverse. Only this file and the commands construct. */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Clock, systemClock } from "./base/clock.ts";
import { Coalesced } from "./base/concurrency.ts";
import { type DeadlineLimits, whenAborted } from "./base/deadline.ts";
import { faultOfDisk } from "./base/durable.ts";
import { asFault, type Fault } from "./base/faults.ts";
import { Outage } from "./base/outage.ts";
import { Scope } from "./base/scope.ts";
import type { Settings } from "./config/settings.ts";
import { createDesk, type Desk } from "./daemon/desk.ts";
import { type Current, createHandlers } from "./daemon/handlers.ts";
import { openDaemonHandoffs } from "./daemon/handoff.ts";
import { openMailboxes, servicesOf } from "./daemon/mailboxes.ts";
import { startOrderRunner } from "./daemon/orders.ts";
import { applySettings, schedulePolls } from "./daemon/reload.ts";
import { readUnfinished } from "./daemon/unfinished.ts";
import type { DaemonWatch } from "./daemon/watching.ts";
import { openWorkspace } from "./daemon/workspace.ts";
import type { HandoffPatience, Handoffs } from "./handoff/port.ts";
import type { Host } from "./host/systemd.ts";
import type { Ledger } from "./ledger/port.ts";
import { NOTHING_EXPECTED, openExpected } from "./mailbox/expected.ts";
import type { MailboxState } from "./mailbox/state.ts";
import { jobOf, type PollTools } from "./mailbox/tools.ts";
import { forgetLateDrops, recoverLeftOvers, reportOnce } from "./mailbox/unfinished.ts";
import type { Services } from "./model/job.ts";
import { hasEnded, type TransferRecord } from "./model/record.ts";
import { watchDropFolder } from "./passwords/dropped.ts";
import type { Passwords } from "./passwords/port.ts";
import { openQueue } from "./queue/open.ts";
import type { JobQueue } from "./queue/port.ts";
import { LargeTransfers } from "./transfer/large.ts";
import type { Patience, TransferTools } from "./transfer/tools.ts";

export type { DaemonWatch } from "./daemon/watching.ts";

export interface DaemonOptions {
  /** `once`: every mailbox is polled once, and open transfers are downloaded. */
  readonly mode: "run" | "once";
  /** Aborts to stop: what runs has `graceMs` to end. */
  readonly stop: AbortSignal;
  readonly graceMs: number;
  readonly watch: DaemonWatch;
  readonly clock?: Clock;
  readonly patience?: Patience & {
    readonly handoff?: Partial<HandoffPatience>;
    readonly poll?: DeadlineLimits | undefined;
  };
  /** Who supervises the process, and wants to know how it is. */
  readonly host?: Host | undefined;
  /** Tells of new settings: what of them can be applied while it runs is. Or why there are none. */
  readonly follow?: (
    apply: (next: Settings) => Promise<void>,
    refused: (fault: Fault) => void,
  ) => Promise<{ close(): Promise<void> }>;
}

export interface DaemonOutcome {
  /** How many polls failed. */
  readonly failedPolls: number;
  /** How many transfers are not finished, are quarantined, or could not even be taken up. */
  readonly unsettled: number;
}

/** Another process may discover a transfer and be gone before anybody else has heard of it. */
const LEARN_EVERY_MS = 10 * 60_000;

/** Each time one of 256 parts of the ledger is looked at: all of it in a day. */
const SWEEP_EVERY_MS = 5 * 60_000;

/** What stands for the start itself among those that a full disk meets. */
const START = "start";

/** Long lists take their time. The total is below what counts as stuck, so that no watchdog ends the daemon. */
const POLL_DEADLINE: DeadlineLimits = { stallMs: 10 * 60_000, totalMs: 25 * 60_000 };

const PATIENCE: Patience = { retryMs: 5_000, diskMs: 30_000, lockedMs: 15 * 60_000, slowMs: 2 * 60_000 };

/** Where there is no room even to begin, `run` waits for it. */
export async function runDaemon(settings: Settings, options: DaemonOptions): Promise<DaemonOutcome> {
  const { stop, mode, clock = systemClock, patience = PATIENCE } = options;
  const desk = mode === "run" ? await createDesk(settings, clock) : undefined;
  const watch = desk?.overhear(options.watch) ?? options.watch;
  await using scope = new Scope();
  if (desk !== undefined) scope.use(options.host?.attend(desk.vitals, stop), (it) => it?.close());
  const diskFull = new Outage(clock, {
    began: (fault) => watch.diskFull(fault),
    ended: (lastedMs) => watch.diskHasRoom(lastedMs),
  });
  for (;;) {
    try {
      return await live(settings, { ...options, watch }, diskFull, desk);
    } catch (error) {
      // What failed first counts, not what closing made of it.
      const cause: unknown = error instanceof SuppressedError ? error.suppressed : error;
      const fault = asFault(faultOfDisk(cause, settings.inbox));
      if (mode === "run" && fault.code === "STOPPED") return { failedPolls: 0, unsettled: 0 };
      if (mode === "once" || fault.code !== "DISK_FULL" || stop.aborted) throw fault;
      diskFull.add(START, fault);
      await pause(patience.diskMs, undefined, { signal: stop }).catch(() => {});
    }
  }
}

async function live(
  settings: Settings,
  options: DaemonOptions,
  diskFull: Outage,
  desk: Desk | undefined,
): Promise<DaemonOutcome> {
  const { watch, stop, clock = systemClock } = options;
  await using scope = new Scope();
  const isShared = settings.queue !== "embedded";
  let described = settings.mailboxes;
  let services = servicesOf(described);
  let now: Current = { expected: NOTHING_EXPECTED, limits: settings.limits, handoff: settings.handoff };
  const live = { mailboxes: () => described, handoff: () => now.handoff };
  const { ledger, inbox, passwords } = await openWorkspace(settings, live, scope, watch, clock);
  const open = await openMailboxes(settings, scope, clock, watch, stop);
  const mailboxes = open.states;
  await desk?.open(inbox, scope, watch, stop);
  const placed = await recoverLeftOvers(inbox, passwords, ledger, mailboxes, watch);
  const expectedTools = { folder: join(settings.work, "expected"), ledger, clock, watch };
  now = { ...now, expected: await openExpected(expectedTools, settings.mailboxes) };
  scope.use(undefined, () => now.expected.close());
  const learn = async () => {
    const unfinished = await readUnfinished({ ledger, inbox, diskFull });
    unfinished.apply(mailboxes);
    return unfinished.records;
  };
  if (isShared) {
    const timer = setInterval(() => void learn().catch(() => {}), LEARN_EVERY_MS);
    scope.use(timer, () => clearInterval(timer));
  }
  const patience = options.patience?.handoff;
  const isClockRight = () => open.isClockRight();
  const surroundings = { ledger, inbox, clock, watch, stop, patience, isClockRight };
  const handoffs = await openDaemonHandoffs(settings, { ...surroundings, handoff: live.handoff });
  scope.use(handoffs, (it) => it.close());
  for (const record of placed) {
    watch.stateChanged(record);
    if (record.state === "delivered") await handoffs.placed(record);
  }
  const queue = scope.use(await openEngine(settings, options, clock, () => services), (opened) =>
    opened.close(options.graceMs),
  );

  diskFull.clear(START);
  const heard: PollTools["watch"] = {
    ...watch,
    discovered(record) {
      watch.discovered(record);
      now.expected.discovered(record);
    },
  };
  const atOnce = settings.limits.transfers;
  const deadline = options.patience?.poll ?? POLL_DEADLINE;
  const poll: PollTools = { ledger, passwords, queue, clock, watch: heard, diskFull, atOnce, deadline };
  // What our own limit makes slow gains nothing by waiting, and a round from cron would end without what waits.
  const mayGiveWay = options.mode === "run" && (settings.limits.bandwidth ?? []).length === 0;
  const transfer: Omit<TransferTools, keyof Current> = {
    inbox,
    ledger,
    passwords,
    handoffs,
    clock,
    random: Math.random,
    patience: options.patience ?? PATIENCE,
    diskFull,
    large: new LargeTransfers(),
    othersWait: async () => mayGiveWay && ((await queue.depth()) ?? 0) > 0,
    watch,
  };
  const onDamaged = reportOnce((...facts) => watch.recordDamaged(...facts));
  const listUnfinished = async () => [
    ...(await learn()),
    ...(await Array.fromAsync(ledger.quarantined(onDamaged))),
  ];
  await desk?.attach(queue, scope, isShared, listUnfinished, async () => {
    await now.expected.learn();
    return now.expected.overdue();
  });
  const current = () => now;
  const handlers = createHandlers({ current, mailboxes, poll, transfer, clock, desk });
  await queue.start(handlers);
  scope.use(
    await watchDropFolder(
      settings.state,
      (trackingId) => {
        for (const [name, { transfers }] of mailboxes) {
          const expiresMs = transfers.expiryOf(trackingId);
          if (expiresMs === undefined) continue;
          // Where the queue cannot be reached, the next poll finds the password.
          hurryWanted({ ledger, queue }, name, trackingId, expiresMs).catch(() => {});
        }
      },
      watch.unwatchable,
    ),
    (watcher) => watcher.close(),
  );

  const { work } = settings;
  const orderTools = { work, ledger, inbox, passwords, queue, handoffs, clock, diskFull, watch };
  const orders = scope.use(await startOrderRunner(orderTools, mailboxes), (it) => it.close());
  desk?.runOrdersWith(() => orders.run());
  await orders.run();

  const house = { settings, ledger, mailboxes, passwords, handoffs, watch, isClockRight };
  const active = settings.mailboxes.filter((mailbox) => !mailbox.paused);
  if (options.mode === "once") {
    watch.ready();
    const work = async () => {
      await queue.pollNow(active.map(({ name }) => name));
      await queue.idle();
      await handoffs.finish();
    };
    await Promise.race([work(), whenAborted(stop)]);
    if (!stop.aborted) await sweep(house);
  } else {
    handoffs.start();
    const keeping = new Coalesced(() => keepHouse(house));
    const timer = setInterval(() => void (keeping.isIdle && keeping.run()), SWEEP_EVERY_MS);
    scope.use(timer, async () => {
      clearInterval(timer);
      await keeping.idle();
    });
    await schedulePolls(queue, settings);
    watch.ready();
    const become = (next: Current, configured: Settings["mailboxes"]) => {
      now = next;
      described = configured;
      services = servicesOf(configured);
    };
    const parts = { settings, current, become, mailboxes: open, expected: expectedTools };
    const tools = { ...parts, ledger, inbox, diskFull, queue, clock, desk, watch };
    const follower = await options.follow?.((next) => applySettings(tools, next), watch.reloadRefused);
    scope.use(follower, (it) => it?.close());
    await whenAborted(stop);
  }
  // What is settled need not be looked at again.
  await ledger.flush();
  let unplaced = 0;
  await recover({ ledger, handoffs, watch }, () => unplaced++);
  const unfinished = await Array.fromAsync(ledger.open(() => {}));
  const kept = await Array.fromAsync(ledger.quarantined(() => {}));
  const unusable = [...mailboxes.values()].reduce((sum, { health }) => sum + health.unusable, 0);
  return {
    failedPolls: handlers.failedPolls(),
    unsettled: unfinished.length + unplaced + kept.length + unusable + handoffs.failing(),
  };
}

interface HouseKeeping {
  readonly settings: Settings;
  readonly ledger: Ledger;
  readonly mailboxes: ReadonlyMap<string, MailboxState>;
  readonly passwords: Passwords;
  readonly handoffs: Handoffs;
  readonly watch: DaemonWatch;
  isClockRight(): boolean;
}

/** Finishes deliveries that were decided and not placed. `onFailed`: called for each that cannot be. */
async function recover(
  { ledger, handoffs, watch }: Pick<HouseKeeping, "ledger" | "handoffs" | "watch">,
  onFailed: () => void,
): Promise<void> {
  for (const record of await ledger.recover(onFailed)) {
    watch.stateChanged(record);
    if (record.state === "delivered") await handoffs.placed(record);
  }
}

/** Finishes what another process left when it died, and removes what is older than it is to be kept. Never throws. */
async function keepHouse(house: HouseKeeping): Promise<void> {
  try {
    await recover(house, () => {});
  } catch {
    // Tried again soon.
  }
  await sweep(house);
}

/** Never throws. Each step is tried again soon, and keeps no other from being done. */
async function sweep({ settings, ledger, mailboxes, passwords, isClockRight }: HouseKeeping): Promise<void> {
  const isListed = ({ mailbox, trackingId }: TransferRecord) =>
    mailboxes.get(mailbox)?.mayList(trackingId) ?? false;
  await forgetLateDrops(passwords, ledger, mailboxes).catch(() => {});
  if (!isClockRight()) return;
  await passwords.forgetExpired().catch(() => {});
  await ledger.sweep({ ...settings.keep, isListed }).catch(() => {});
}

/** A person supplied a password, and wants the transfer now. */
async function hurryWanted(
  { ledger, queue }: { readonly ledger: Ledger; readonly queue: JobQueue },
  mailbox: string,
  trackingId: string,
  expiresMs: number,
): Promise<void> {
  const record = await ledger.find({ mailbox, trackingId });
  if (record === undefined || hasEnded(record)) return;
  ledger.note({ ...record, wanted: true });
  await ledger.flush();
  await queue.hurry(jobOf(ledger, mailbox, trackingId, expiresMs));
}

function openEngine(
  settings: Settings,
  options: DaemonOptions,
  clock: Clock,
  services: Services,
): Promise<JobQueue> {
  const { watch, mode, stop } = options;
  return openQueue(settings.queue, {
    places: settings.limits.transfers,
    mode,
    services,
    outage: new Outage(clock, {
      began: (fault) => watch.queueLost(fault),
      ended: (lastedMs) => watch.queueBack(lastedMs),
    }),
    onForgetful: (policy) => watch.queueForgets(policy),
    signal: stop,
  });
}
