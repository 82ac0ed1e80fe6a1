/**
 * One channel for notifications. Notices are gathered, then sent in one message: the first soon, later ones as digests.
 * After a failure, the next attempt follows with backoff, and includes newer notices.
 */

import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { LONGEST_TIMER_MS, unlessStopped } from "../base/deadline.ts";
import { asFault, type Fault } from "../base/faults.ts";
import { matchesGlob } from "../base/glob.ts";
import { random } from "../base/random.ts";
import { clearInterval, clearTimeout, setInterval, setTimeout, type Timer } from "../base/timers.ts";
import { DAY_MS } from "../base/timetable.ts";
import type { DaemonEvent, Emit, ShownMailbox } from "../model/events.ts";
import { type ChannelSettings, describeChannel } from "../model/notify.ts";
import { formatMessage, type MessageOrigin } from "./message.ts";
import { applyEvent, type Notice, type NoticeChanges } from "./notices.ts";
import { type Batch, placeholderFor } from "./pending.ts";
import { Schedule } from "./schedule.ts";
import { sendMessage } from "./send.ts";
import { SharedState } from "./shared-state.ts";
import { ChannelState } from "./state.ts";
import { StateFiles } from "./state-files.ts";

export interface NotifyPatience {
  /** Pause after the first failure; it grows with each further one. */
  readonly retryMs: number;
  /** A failure of a service or a hand-off that is over within this time is not reported. */
  readonly blipMs: number;
}

export interface ChannelTools {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly stop: AbortSignal;
  /** The folder of its saved state. */
  readonly folder: string;
  /** Other processes use the folder too. */
  readonly isShared: boolean;
  readonly patience: NotifyPatience;
  origin(): MessageOrigin;
  mailboxes(): ReadonlyMap<string, ShownMailbox>;
  /** The base URL of a mailbox's service. */
  serviceOf(mailbox: string): string | undefined;
  /** How many other channels fail now. */
  othersFailing(channel: Channel): number;
}

const SAVE_AFTER_MS = 2_000;
/** The same with several processes. Short, because the others need each change, such as a delivery that settles a notice. */
const SHARE_AFTER_MS = 250;
/** Events come in thousands: the time of the next message is computed for all of them at once. */
const PLAN_AFTER_MS = 100;
/** With several processes: shows that this one is alive, and reads what others have left to send. */
const HEARTBEAT_MS = 2 * 60_000;
/** With several processes: the wait while another one sends. */
const LOOK_AGAIN_MS = 1_000;
/** A lease lasts for the timeout of a message and this margin. Then another process sends the message again. */
const LEASE_MARGIN_MS = 60_000;
/** After a stop, the server has this long to accept the current message. Else it is sent again at the next start. */
const FINISH_MS = 3_000;

export class Channel {
  readonly id: string;
  readonly #tools: ChannelTools;
  #settings: ChannelSettings;
  readonly #files: StateFiles;
  readonly #shared: SharedState;
  readonly #changes: NoticeChanges;
  readonly #flushing = new Coalesced(() => this.#flush());
  readonly #closed = new AbortController();
  /** Aborts on the stop of the daemon too. */
  readonly #ended: AbortSignal;
  #isReady = false;
  #isFinishing = false;
  #failures = 0;
  /** Some recipients of the last mail were refused. The others have it, so it is not sent again. */
  #isPartlyRefused = false;
  #retryAtMs = 0;
  #planTimer: Timer | undefined;
  #sendTimer: Timer | undefined;
  #heartbeat: Timer | undefined;

  constructor(id: string, settings: ChannelSettings, tools: ChannelTools) {
    this.id = id;
    this.#settings = settings;
    this.#tools = tools;
    const { clock, folder, isShared, patience, stop } = tools;
    this.#ended = AbortSignal.any([stop, this.#closed.signal]);
    this.#files = new StateFiles(folder);
    this.#shared = new SharedState({
      files: this.#files,
      isShared,
      saveAfterMs: isShared ? SHARE_AFTER_MS : SAVE_AFTER_MS,
      makeState: (snapshot) => new ChannelState(patience.blipMs, snapshot, clock.now()),
      onChanged: () => this.#planSoon(),
    });
    this.#changes = this.#filtered();
  }

  get isFailing(): boolean {
    return this.#failures > 0 || this.#isPartlyRefused;
  }

  /** Continues with what earlier runs, and processes that have ended, left behind. */
  async start(): Promise<void> {
    await this.#files.clean();
    const { isShared } = this.#tools;
    if (isShared) await this.#beat();
    else await this.#shared.run((state) => state.takeOver(this.#shared.token));
    this.#planSoon();
    if (!isShared || this.#closed.signal.aborted) return;
    this.#heartbeat = setInterval(() => void this.#beat(), HEARTBEAT_MS).unref();
  }

  async #beat(): Promise<void> {
    const claimant = this.#claimant(this.#tools.clock.now());
    await this.#shared.run((state) => state.refresh(claimant));
    // `ready` again: it ends troubles whose processes have ended meanwhile.
    if (this.#isReady) this.accept({ type: "ready" });
  }

  change(settings: ChannelSettings): void {
    this.#settings = settings;
    this.#isPartlyRefused = false;
    this.#shared.change(({ pending }) => pending.keepOnly((notice) => this.#isWanted(notice)));
    this.#retryAtMs = 0;
    this.#planSoon();
  }

  accept(event: DaemonEvent): void {
    if (this.#closed.signal.aborted) return;
    const nowMs = this.#tools.clock.now();
    if (event.type === "poll-failed") this.#pollFailed(event.mailbox, event.fault, nowMs);
    else if (event.type === "poll-succeeded") this.#polled(event.mailbox, nowMs);
    else if (event.type === "settings-reloaded") this.#reloaded(event.mailboxes);
    else if (event.type === "ready") this.#isReady = true;
    applyEvent(event, nowMs, this.#tools.patience.blipMs, this.#changes);
  }

  /** Sends due notices without gathering. For `inlet once`, before it ends. */
  async finish(): Promise<void> {
    this.#isFinishing = true;
    await this.#flushing.run();
  }

  async close(): Promise<void> {
    clearTimeout(this.#planTimer);
    clearTimeout(this.#sendTimer);
    this.#closed.abort();
    clearInterval(this.#heartbeat);
    await this.#flushing.idle();
    const { token } = this.#shared;
    this.#shared.change(({ pending }) => pending.release((process) => process === token));
    await this.#shared.save();
  }

  #pollFailed(mailbox: string, fault: Fault, nowMs: number): void {
    const service = this.#tools.serviceOf(mailbox);
    // A full disk is a trouble of its own.
    if (service === undefined || !this.#concerns(mailbox) || fault.code === "DISK_FULL") return;
    this.#shared.change(({ services, pending }) => {
      const { begun, droppedKey } = services.failed(mailbox, service, fault, nowMs);
      if (droppedKey !== undefined) pending.drop(droppedKey);
      if (this.#isWanted(begun)) pending.begin(begun);
    });
  }

  #polled(mailbox: string, nowMs: number): void {
    this.#shared.change(({ services, pending }) => {
      const over = services.succeeded(mailbox, nowMs);
      if (over !== undefined) pending.end(over);
    });
  }

  /**
   * Removes mailboxes that this process no longer polls. The mailboxes of other processes stay. The event comes before
   * `Notifier.apply`, so the tools still have the old mailboxes.
   */
  #reloaded(mailboxes: readonly ShownMailbox[]): void {
    const polled = new Set(mailboxes.filter(({ paused }) => !paused).map(({ name }) => name));
    const oldNames = new Set(this.#tools.mailboxes().keys());
    this.#shared.change(({ services, pending }) => {
      const droppedKeys = services.keepOnly((name) => polled.has(name) || !oldNames.has(name));
      for (const key of droppedKeys) pending.drop(key);
    });
  }

  /** Adds only notices that the settings ask for. Ends are always applied. */
  #filtered(): NoticeChanges {
    const shared = this.#shared;
    return {
      begin: (notice) => {
        if (this.#isWanted(notice)) shared.change(({ pending }) => pending.begin(notice, shared.token));
      },
      settle: (...keys) => shared.change(({ pending }) => pending.settle(...keys)),
      end: (over) => shared.change(({ pending }) => pending.end(over, shared.token)),
      endEarlier: (over) => shared.change(({ pending }) => pending.endEarlier(over)),
    };
  }

  #isWanted({ kind, mailbox }: Notice): boolean {
    return this.#settings.on.includes(kind) && (mailbox === undefined || this.#concerns(mailbox));
  }

  #concerns(mailbox: string): boolean {
    const { mailboxes: patterns } = this.#settings;
    if (patterns === undefined) return true;
    const names = [mailbox, this.#tools.mailboxes().get(mailbox)?.email ?? mailbox];
    return patterns.some((pattern) =>
      names.some((name) => matchesGlob(name.toLowerCase(), pattern.toLowerCase())),
    );
  }

  #planSoon(): void {
    if (this.#closed.signal.aborted) return;
    this.#planTimer ??= setTimeout(() => this.#plan(), PLAN_AFTER_MS);
  }

  #plan(): void {
    clearTimeout(this.#planTimer);
    this.#planTimer = undefined;
    clearTimeout(this.#sendTimer);
    if (this.#closed.signal.aborted) return;
    const nowMs = this.#tools.clock.now();
    const { state } = this.#shared;
    const due = this.#scheduleOf(state, nowMs).dueMs(state.pending.details());
    if (due === undefined) return;
    const waitMs = Math.max(due, this.#retryAtMs) - nowMs;
    this.#sendTimer = setTimeout(
      () => void this.#flushing.run(),
      Math.min(Math.max(waitMs, 0) + 1, LONGEST_TIMER_MS),
    );
  }

  /** Never throws. */
  async #flush(): Promise<void> {
    if (this.#ended.aborted) return;
    const nowMs = this.#tools.clock.now();
    const claimant = this.#claimant(nowMs);
    const batch = await this.#shared.run((state) => state.claim(claimant, () => this.#select(state, nowMs)));
    if (batch === "by another") this.#retryAtMs = Math.max(this.#retryAtMs, nowMs + LOOK_AGAIN_MS);
    else if (batch !== undefined) await this.#send(batch, nowMs);
    this.#plan();
  }

  #claimant(nowMs: number) {
    return { by: this.#shared.token, nowMs, leaseMs: this.#settings.channel.timeoutMs + LEASE_MARGIN_MS };
  }

  #scheduleOf({ sent }: ChannelState, nowMs: number): Schedule {
    const times = this.#isFinishing ? { ...this.#settings, gatherMs: 0 } : this.#settings;
    return new Schedule(times, sent, nowMs);
  }

  /** `undefined` if nothing is due. */
  #select(state: ChannelState, nowMs: number): Batch | undefined {
    const { pending } = state;
    const schedule = this.#scheduleOf(state, nowMs);
    const due = schedule.dueMs(pending.details());
    if (due === undefined || due > nowMs) return undefined;
    return pending.select(nowMs, (notice) => schedule.isAllowed(notice));
  }

  #hasUrgent({ groups }: Batch, nowMs: number): boolean {
    const schedule = this.#scheduleOf(this.#shared.state, nowMs);
    return groups.some(({ kind, isOver, count, notices }) => {
      const others = count > notices.length ? [{ ...placeholderFor(kind), isOver }] : [];
      return [...notices, ...others].some((notice) => schedule.isUrgent(notice));
    });
  }

  async #send(batch: Batch, nowMs: number): Promise<void> {
    const { clock, emit, othersFailing, origin } = this.#tools;
    const { token } = this.#shared;
    const { channel } = this.#settings;
    const facts = { kind: channel.kind, channel: describeChannel(channel), notices: countOf(batch) };
    const isUrgentMessage = this.#hasUrgent(batch, nowMs);
    const aborter = new AbortController();
    try {
      const message = formatMessage(batch, origin(), nowMs);
      const sending = sendMessage(channel, message, this.#thread(nowMs), clock, aborter.signal);
      const { refused } = await unlessStopped(sending, FINISH_MS, this.#ended);
      this.#shared.change((state) => {
        const lastUrgentMs = isUrgentMessage ? nowMs : state.sent.lastUrgentMs;
        state.succeeded(token, batch, { lastSentMs: nowMs, lastUrgentMs });
      });
      await this.#shared.save();
      this.#retryAtMs = 0;
      this.#failures = 0;
      const isFirst = !this.#isPartlyRefused;
      this.#isPartlyRefused = refused !== undefined;
      if (refused !== undefined) emit({ type: "recipients-refused", ...facts, fault: refused, isFirst });
      else emit({ type: "notify-succeeded", ...facts, failing: othersFailing(this) });
    } catch (error) {
      this.#shared.change((state) => state.failed(token));
      await this.#shared.save();
      const fault = asFault(error);
      if (fault.code !== "STOPPED") this.#failed(facts, fault);
    } finally {
      aborter.abort();
    }
  }

  #failed(facts: { kind: "mail" | "webhook"; channel: string; notices: number }, fault: Fault): void {
    const isFirst = this.#failures === 0;
    this.#failures++;
    const { clock, emit, patience } = this.#tools;
    const waitMs = Math.max(backoffMs(this.#failures, random(), patience.retryMs), fault.retryAfterMs ?? 0);
    this.#retryAtMs = clock.now() + waitMs;
    emit({ type: "notify-failed", ...facts, fault, isFirst, waitMs });
  }

  /** Mails of one day belong together. */
  #thread(nowMs: number): string {
    return `inlet-${Math.floor(nowMs / DAY_MS)}-${this.id}`;
  }
}

function countOf({ groups }: Batch): number {
  return groups.reduce((sum, { count }) => sum + count, 0);
}
