/** The whole life of the daemon: open in order, work, wait, close in reverse. Only this file and the commands construct. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Clock, systemClock } from "./base/clock.ts";
import { faultOfDisk } from "./base/durable.ts";
import { asFault } from "./base/faults.ts";
import { Outage } from "./base/outage.ts";
import { runInParallel } from "./base/parallel.ts";
import { Scope } from "./base/scope.ts";
import { collectTransfer } from "./collect/collect.ts";
import type { CollectTools, Patience } from "./collect/tools.ts";
import type { Settings } from "./config/settings.ts";
import { createDesk, type Desk } from "./daemon/desk.ts";
import { openDaemonHandoffs } from "./daemon/handoff.ts";
import { workOn } from "./daemon/hearing.ts";
import { openMailboxes, sourceOf } from "./daemon/mailboxes.ts";
import { startObeying } from "./daemon/orders.ts";
import { openPremises } from "./daemon/premises.ts";
import { needsRestart } from "./daemon/reload.ts";
import type { DaemonWatch } from "./daemon/watching.ts";
import type { HandoffPatience } from "./handoff/port.ts";
import type { Host } from "./host/systemd.ts";
import { openExpected } from "./mailbox/expected.ts";
import { pollMailbox } from "./mailbox/poll.ts";
import { jobOf, type PollTools } from "./mailbox/tools.ts";
import { clearLeftOvers, learnUnfinished, listQuarantined, tellOnce } from "./mailbox/unfinished.ts";
import { DONE, POLLS_AT_ONCE } from "./model/job.ts";
import type { Pulse } from "./observe/pulse.ts";
import { watchDropFolder } from "./passwords/watch.ts";
import { openQueue } from "./queue/open.ts";
import type { JobQueue } from "./queue/port.ts";

export type { DaemonWatch } from "./daemon/watching.ts";

export interface DaemonOptions {
  /** `once`: every mailbox is polled once, what can be collected is, and that is all. */
  readonly mode: "run" | "once";
  /** Aborts to stop: what runs has `graceMs` to end. */
  readonly stop: AbortSignal;
  readonly graceMs: number;
  readonly watch: DaemonWatch;
  readonly clock?: Clock;
  readonly patience?: Patience & { readonly handoff?: Partial<HandoffPatience> };
  /** Who supervises the process, and wants to know how it is. */
  readonly host?: Host | undefined;
  /** Tells of new settings: what of them can be applied while it runs is. */
  readonly follow?: (apply: (next: Settings) => Promise<void>) => Promise<{ close(): Promise<void> }>;
}

export interface DaemonOutcome {
  /** How many polls failed. */
  readonly failedPolls: number;
  /** How many transfers are not finished, are quarantined, or could not even be taken up. */
  readonly unsettled: number;
}

/** Another process may discover a transfer and be gone before anybody else has heard of it. */
const LEARN_EVERY_MS = 10 * 60_000;

/** What stands for the start itself among those that a full disk meets. */
const START = "start";

const PATIENCE: Patience = { retryMs: 5_000, diskMs: 30_000, lockedMs: 15 * 60_000 };

/** Where there is no room even to begin, `run` waits for it. */
export async function runDaemon(settings: Settings, options: DaemonOptions): Promise<DaemonOutcome> {
  const { stop, mode, clock = systemClock, patience = PATIENCE } = options;
  const desk = mode === "run" ? await createDesk(settings, clock) : undefined;
  const watch = desk?.overhear(options.watch) ?? options.watch;
  await using scope = new Scope();
  if (desk !== undefined) scope.use(options.host?.attend(desk.vitals), (it) => it?.close());
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
      diskFull.meets(START, fault);
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
  const { members, receipts, inbox, passwords } = await openPremises(settings, scope, watch, clock.now());
  const { states: mailboxes, apply: applyMailboxes } = await openMailboxes(
    settings,
    scope,
    clock,
    watch,
    stop,
  );
  await desk?.open(inbox, scope, watch, stop);
  await clearLeftOvers(inbox, passwords, receipts, mailboxes, watch);
  const expectedTools = { folder: join(settings.work, "expected"), receipts, clock, watch };
  let expected = await openExpected(expectedTools, settings.mailboxes);
  scope.use(undefined, () => expected.close());
  if (isShared) {
    const learn = () => learnUnfinished(receipts, mailboxes, () => {}).catch(() => {});
    scope.use(setInterval(learn, LEARN_EVERY_MS), (timer) => clearInterval(timer));
  }
  const patience = options.patience?.handoff;
  const surroundings = { members, receipts, inbox, clock, watch, stop, patience };
  const handoff = () => collect.handoff;
  const handoffs = await openDaemonHandoffs(settings, { ...surroundings, handoff });
  scope.use(handoffs, (it) => it.close());
  const queue = scope.use(await openEngine(settings, options, clock), (opened) =>
    opened.close(options.graceMs),
  );

  const tellDamaged = tellOnce((...facts) => watch.receiptDamaged(...facts));
  const listUnfinished = async () => [
    ...(await learnUnfinished(receipts, mailboxes, () => {})),
    ...(await listQuarantined(inbox, receipts, tellDamaged)),
  ];
  await desk?.attach(queue, scope, listUnfinished, expected.overdue());

  diskFull.isPast(START);
  const heard: PollTools["watch"] = {
    ...watch,
    discovered(receipt) {
      watch.discovered(receipt);
      expected.discovered(receipt);
    },
  };
  const poll: PollTools = { receipts, passwords, queue, clock, watch: heard, diskFull };
  let collect: CollectTools = {
    inbox,
    receipts,
    passwords,
    limits: settings.limits,
    handoff: settings.handoff,
    handoffs,
    clock,
    random: Math.random,
    patience: options.patience ?? PATIENCE,
    diskFull,
    watch,
  };
  const during: Pulse["during"] = (what, work) => desk?.pulse.during(what, work) ?? work();
  let failedPolls = 0;
  const pollByName = async (name: string, signal: AbortSignal) => {
    const state = mailboxes.get(name);
    if (state === undefined) return;
    const beganMs = clock.now();
    const isGood = await pollMailbox(poll, state, signal);
    if (isGood) await expected.check(name, beganMs);
    else failedPolls++;
    desk?.polled(state, isGood, (clock.now() - beganMs) / 1000);
  };
  await queue.start({
    poll: (name, signal) => during(`the poll of ${name}`, () => pollByName(name, signal)),
    async collect(job, signal) {
      const state = mailboxes.get(job.mailbox);
      if (state === undefined) return DONE;
      return during(workOn(job), () => collectTransfer(collect, sourceOf(state), job, signal));
    },
  });
  scope.use(
    watchDropFolder(settings.state, (trackingId) => {
      for (const [name, { undelivered }] of mailboxes) {
        const known = undelivered.get(trackingId);
        if (known === undefined) continue;
        // Where the queue cannot be reached, the next poll finds the password.
        queue.hurry(jobOf(receipts, name, trackingId, known.expiresMs, "wanted")).catch(() => {});
      }
    }),
    (watcher) => watcher.close(),
  );

  const { work } = settings;
  const orders = { work, members, receipts, inbox, passwords, queue, handoffs, clock, diskFull, watch };
  const { obey } = scope.use(await startObeying(orders, mailboxes), (it) => it.close());
  desk?.obeyWith(obey);
  await obey();

  const active = settings.mailboxes.filter((mailbox) => !mailbox.paused);
  if (options.mode === "once") {
    watch.ready();
    await runInParallel(POLLS_AT_ONCE, active, ({ name }) => pollByName(name, stop));
    await Promise.race([queue.idle().then(() => handoffs.finish()), stopped(stop)]);
  } else {
    const schedule = ({ mailboxes: all }: Settings) =>
      queue.schedule(
        all.filter(({ paused }) => !paused).map(({ name, pollMs }) => ({ mailbox: name, everyMs: pollMs })),
      );
    handoffs.start();
    await schedule(settings);
    watch.ready();
    const follower = await options.follow?.(async (next) => {
      await applyMailboxes(next.mailboxes);
      await learnUnfinished(receipts, mailboxes, () => {});
      await expected.close();
      expected = await openExpected(expectedTools, next.mailboxes);
      collect = { ...collect, limits: next.limits, handoff: next.handoff };
      desk?.mailboxesChanged(next.mailboxes);
      await schedule(next);
      watch.reloaded(next.mailboxes.length, needsRestart(settings, next));
    });
    scope.use(follower, (it) => it?.close());
    await stopped(stop);
  }
  const [unfinished, kept] = await Promise.all([receipts.openNames(), readdir(inbox.quarantine)]);
  const unusable = [...mailboxes.values()].reduce((sum, { complaints }) => sum + complaints.size, 0);
  return { failedPolls, unsettled: unfinished.length + kept.length + unusable + handoffs.failing() };
}

/** One service for all: where it asks for fewer requests, all of them wait. */
function openEngine(settings: Settings, options: DaemonOptions, clock: Clock): Promise<JobQueue> {
  const { watch, mode, stop } = options;
  return openQueue(settings.queue, {
    places: settings.limits.transfers,
    mode,
    oneService: new Set(settings.mailboxes.map(({ service }) => service)).size === 1,
    outage: new Outage(clock, {
      began: (fault) => watch.queueLost(fault),
      ended: (lastedMs) => watch.queueBack(lastedMs),
    }),
    onForgetful: (policy) => watch.queueForgets(policy),
    signal: stop,
  });
}

async function stopped(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  await new Promise<void>((resolve) => stop.addEventListener("abort", () => resolve(), { once: true }));
}
