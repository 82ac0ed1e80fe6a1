/** The whole life of the daemon: open in order, work, wait, close in reverse. Only this file and the commands construct. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Clock, systemClock } from "./base/clock.ts";
import { faultOfDisk, makeFolderDurably } from "./base/durable.ts";
import { asFault, type Fault } from "./base/faults.ts";
import { Outage } from "./base/outage.ts";
import { Scope } from "./base/scope.ts";
import { Secret } from "./base/secret.ts";
import { collectTransfer } from "./collect/collect.ts";
import type { CollectTools, Patience } from "./collect/tools.ts";
import { keepClientId } from "./config/client-id.ts";
import type { MailboxSettings, Settings } from "./config/settings.ts";
import { lockInbox } from "./inbox/lock.ts";
import { openInbox } from "./inbox/open.ts";
import { pollMailbox } from "./mailbox/poll.ts";
import { findState } from "./mailbox/reconcile.ts";
import { MailboxState } from "./mailbox/state.ts";
import { Tokens } from "./mailbox/tokens.ts";
import { jobOf, type PollTools } from "./mailbox/tools.ts";
import { DONE } from "./model/job.ts";
import { openPasswords } from "./passwords/open.ts";
import type { Passwords } from "./passwords/port.ts";
import { watchDropFolder } from "./passwords/watch.ts";
import { createEmbeddedQueue } from "./queue/embedded.ts";
import { openReceipts } from "./receipts/files.ts";
import type { Receipts } from "./receipts/port.ts";
import { openService } from "./service/open.ts";
import type { ServicePort } from "./service/port.ts";

export interface DaemonOptions {
  /** `once`: every mailbox is polled once, what can be collected is, and that is all. */
  readonly mode: "run" | "once";
  /** Aborts to stop: what runs has `graceMs` to end. */
  readonly stop: AbortSignal;
  readonly graceMs: number;
  readonly watch: DaemonWatch;
  readonly clock?: Clock;
  readonly patience?: Patience;
}

/** Hears everything that is worth telling. */
export type DaemonWatch = CollectTools["watch"] &
  PollTools["watch"] & {
    /** Intake pauses. Not told again until it was over. */
    diskFull(fault: Fault): void;
    diskHasRoom(pausedForMs: number): void;
    /** A client id was made, and an administrator has to register it. */
    clientIdMade(origin: string, path: string): void;
    receiptDamaged(path: string, reason: string): void;
    ready(): void;
  };

export interface DaemonOutcome {
  /** How many polls failed. */
  readonly failedPolls: number;
  /** How many transfers wait for something, or are quarantined. */
  readonly unsettled: number;
}

/** Beside those for downloads. */
const POLL_CONNECTIONS = 4;

/** What stands for the start itself among those that a full disk meets. */
const START = "start";

const PATIENCE: Patience = { retryMs: 5_000, diskMs: 30_000, lockedMs: 15 * 60_000 };

/** Where there is no room even to begin, `run` waits for it. */
export async function runDaemon(settings: Settings, options: DaemonOptions): Promise<DaemonOutcome> {
  const { watch, stop, mode, clock = systemClock, patience = PATIENCE } = options;
  const diskFull = new Outage(clock, {
    began: (fault) => watch.diskFull(fault),
    ended: (lastedMs) => watch.diskHasRoom(lastedMs),
  });
  for (;;) {
    try {
      return await live(settings, options, diskFull);
    } catch (error) {
      const fault = asFault(faultOfDisk(error, settings.inbox));
      if (mode === "once" || fault.code !== "DISK_FULL" || stop.aborted) throw fault;
      diskFull.meets(START, fault);
      await pause(patience.diskMs, undefined, { signal: stop }).catch(() => {});
    }
  }
}

async function live(settings: Settings, options: DaemonOptions, diskFull: Outage): Promise<DaemonOutcome> {
  const { watch, stop, clock = systemClock } = options;
  await using scope = new Scope();
  for (const folder of [settings.inbox, settings.work, settings.state, join(settings.state, "tokens")]) {
    await makeFolderDurably(folder, folder === settings.inbox ? settings.handoff.folderMode : 0o700);
  }
  scope.use(await lockInbox(settings.work, clock.now()), (lock) => lock.release());
  const receipts = scope.use(await openReceipts(settings.work), (opened) => opened.close());
  const inbox = await openInbox(settings.inbox, settings.work, settings.limits.minFreeBytes);
  const passwords = await openPasswords(settings.state);
  const mailboxes = await openMailboxes(settings, scope, clock, receipts, options);
  await clearLeftOvers(inbox.staging, passwords, receipts, mailboxes);
  const queue = scope.use(
    createEmbeddedQueue({ places: settings.limits.transfers, random: Math.random }),
    (opened) => opened.close(options.graceMs),
  );

  diskFull.isPast(START);
  const poll: PollTools = { receipts, passwords, queue, clock, watch, diskFull };
  const collect: CollectTools = {
    inbox,
    receipts,
    passwords,
    limits: settings.limits,
    handoff: settings.handoff,
    clock,
    random: Math.random,
    patience: options.patience ?? PATIENCE,
    diskFull,
    watch,
  };
  let failedPolls = 0;
  await queue.start({
    async poll(name, signal) {
      const state = mailboxes.get(name);
      if (state !== undefined && !(await pollMailbox(poll, state, signal))) failedPolls++;
    },
    async collect(job, signal) {
      const state = mailboxes.get(job.mailbox);
      return state === undefined ? DONE : collectTransfer(collect, sourceOf(state), job, signal);
    },
  });
  scope.use(
    watchDropFolder(settings.state, (trackingId) => {
      for (const [name, { undelivered }] of mailboxes) {
        const known = undelivered.get(trackingId);
        if (known !== undefined) void queue.hurry(jobOf(receipts, name, trackingId, known.expiresMs));
      }
    }),
    (watcher) => watcher.close(),
  );

  const active = settings.mailboxes.filter((mailbox) => !mailbox.paused);
  await queue.schedule(active.map(({ name, pollMs }) => ({ mailbox: name, everyMs: pollMs })));
  watch.ready();
  if (options.mode === "once") await Promise.race([queue.idle(), stopped(stop)]);
  else await stopped(stop);
  return { failedPolls, unsettled: await countUnsettled(receipts, inbox.quarantine) };
}

async function countUnsettled(receipts: Receipts, quarantine: string): Promise<number> {
  let count = (await readdir(quarantine)).length;
  for await (const { state } of receipts.open(() => {})) if (state === "waiting") count++;
  return count;
}

async function openMailboxes(
  settings: Settings,
  scope: Scope,
  clock: Clock,
  receipts: Receipts,
  { watch, stop }: DaemonOptions,
): Promise<Map<string, MailboxState>> {
  const folder = join(settings.state, "tokens");
  const mailboxes = new Map<string, MailboxState>();
  const services = new Map<MailboxSettings["service"], ServicePort>();
  for (const mailbox of settings.mailboxes) {
    const described = mailbox.service;
    const service =
      services.get(described) ?? scope.use(await open(described, settings, watch, stop), (it) => it.close());
    services.set(described, service);
    const tokens = new Tokens(mailbox, service, described.token, folder, clock);
    mailboxes.set(mailbox.name, new MailboxState(mailbox, service, tokens));
  }
  for await (const receipt of receipts.open((path, reason) => watch.receiptDamaged(path, reason))) {
    const expiresMs = receipt.expires === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(receipt.expires);
    mailboxes.get(receipt.mailbox)?.undelivered.set(receipt.trackingId, { expiresMs });
  }
  return mailboxes;
}

/** One client per service, however many mailboxes share it. */
async function open(
  described: MailboxSettings["service"],
  { state, limits }: Settings,
  watch: DaemonWatch,
  stop: AbortSignal,
): Promise<ServicePort> {
  const own = described.clientId === undefined ? await keepClientId(state) : undefined;
  if (own?.made === true) watch.clientIdMade(described.baseUrl.origin, own.path);
  const clientId = own?.clientId ?? (await described.clientId?.read(stop)) ?? new Secret("");
  const connections = limits.transfers * limits.filesPerTransfer + POLL_CONNECTIONS;
  return openService({ ...described, clientId, connections, idListForm: "repeat" });
}

/** What a crash left of transfers that nobody works on any more: files put together, and passwords kept. */
async function clearLeftOvers(
  staging: string,
  passwords: Passwords,
  receipts: Receipts,
  mailboxes: ReadonlyMap<string, MailboxState>,
): Promise<void> {
  const unsettled = [...mailboxes].flatMap(([mailbox, { undelivered }]) =>
    [...undelivered.keys()].map((trackingId) => ({ mailbox, trackingId })),
  );
  await passwords.forgetOthers(unsettled);
  const wanted = new Set(unsettled.map((key) => receipts.folderName(key)));
  for (const name of await readdir(staging)) {
    if (!wanted.has(name)) await rm(join(staging, name), { recursive: true, force: true });
  }
}

function sourceOf(state: MailboxState) {
  return {
    mailbox: state.mailbox,
    service: state.service,
    health: state.health,
    linkOf: (trackingId: string) => state.links.get(trackingId),
    isVanished: (trackingId: string) => state.vanished.has(trackingId),
    stateOf: (trackingId: string, signal: AbortSignal) => findState(state, trackingId, signal),
  };
}

async function stopped(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  await new Promise<void>((resolve) => stop.addEventListener("abort", () => resolve(), { once: true }));
}
