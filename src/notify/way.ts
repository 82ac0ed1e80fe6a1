/**
 * One way to notify. Notices are gathered, then sent in one message: the first soon, later ones as digests. A message
 * that cannot be sent is tried again with growing pauses, and takes up what happened meanwhile.
 */
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { asFault, type Fault } from "../base/faults.ts";
import { matchesGlob } from "../base/glob.ts";
import type { DaemonEvent, Emit, ShownMailbox } from "../model/events.ts";
import { describeWay, type Notification } from "../model/notify.ts";
import { Memory, type MemorySnapshot } from "./memory.ts";
import { formatMessage, type Sender } from "./message.ts";
import { applyEvent, type Notice, type NoticeChanges } from "./notices.ts";
import { type Batch, Pending } from "./pending.ts";
import { dueMs, isUrgent, NEVER_SENT, nextAllowed, quietUntil, type SentTimes } from "./schedule.ts";
import { sendMessage } from "./send.ts";
import { ServiceTroubles } from "./service-troubles.ts";

export interface NotifyPatience {
  /** Pause after the first failure; it grows with each further one. */
  readonly retryMs: number;
  /** A failure of a service or a hand-off that is over within this time is not notified. */
  readonly blipMs: number;
}

export interface WayTools {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly stop: AbortSignal;
  /** For what it remembers. */
  readonly folder: string;
  /** Other processes use the folder too. */
  readonly isShared: boolean;
  readonly patience: NotifyPatience;
  sender(): Sender;
  mailboxes(): ReadonlyMap<string, ShownMailbox>;
  /** The base URL of a mailbox's service. */
  serviceOf(mailbox: string): string | undefined;
  /** How many other ways fail now. */
  othersFailing(way: Way): number;
}

const SAVE_AFTER_MS = 2_000;
/** Events come in thousands: the time of the next message is computed for all of them at once. */
const PLAN_AFTER_MS = 100;
/** On Redis: shows that this process is alive, and takes over from processes that are not. */
const HEARTBEAT_MS = 2 * 60_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const DAY_MS = 86_400_000;

export class Way {
  readonly id: string;
  readonly #tools: WayTools;
  #settings: Notification;
  readonly #memory: Memory;
  readonly #pending: Pending;
  readonly #changes: NoticeChanges;
  readonly #services: ServiceTroubles;
  readonly #saving = new Coalesced(() => this.#memory.save(this.#snapshot()), SAVE_AFTER_MS);
  readonly #flushing = new Coalesced(() => this.#flush());
  readonly #closed = new AbortController();
  #sent: SentTimes = NEVER_SENT;
  #failures = 0;
  #retryAtMs = 0;
  #planner: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(id: string, settings: Notification, tools: WayTools) {
    this.id = id;
    this.#settings = settings;
    this.#tools = tools;
    this.#memory = new Memory(tools.folder, tools.isShared);
    this.#services = new ServiceTroubles(tools.patience.blipMs);
    this.#pending = new Pending(
      () => this.#planSoon(),
      () => this.#saving.schedule(),
    );
    this.#changes = this.#filtered();
  }

  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** Continues with what earlier runs, and processes that have ended, left behind. */
  async start(): Promise<void> {
    await this.#takeOver();
    if (!this.#tools.isShared || this.#closed.signal.aborted) return;
    this.#heartbeat = setInterval(() => {
      void this.#memory.touch();
      void this.#takeOver();
    }, HEARTBEAT_MS).unref();
  }

  async #takeOver(): Promise<void> {
    const found = await this.#memory.takeOver();
    for (const { pending, failing, lastSentMs, lastUrgentMs } of found) {
      this.#pending.restore(pending);
      this.#services.restore(failing, this.#tools.clock.now());
      this.#sent = {
        lastSentMs: Math.max(this.#sent.lastSentMs, lastSentMs),
        lastUrgentMs: Math.max(this.#sent.lastUrgentMs, lastUrgentMs),
      };
    }
    if (found.length > 0) await this.#saving.run();
    this.#planSoon();
  }

  change(settings: Notification): void {
    this.#settings = settings;
    this.#pending.keepOnly((notice) => this.#isWanted(notice));
    this.#retryAtMs = 0;
    this.#planSoon();
  }

  accept(event: DaemonEvent): void {
    const nowMs = this.#tools.clock.now();
    if (event.type === "poll-failed") this.#pollFailed(event.mailbox, event.fault, nowMs);
    else if (event.type === "poll-succeeded") this.#polled(event.mailbox, nowMs);
    else if (event.type === "settings-reloaded") this.#reloaded(event.mailboxes);
    applyEvent(event, nowMs, this.#tools.patience.blipMs, this.#changes);
  }

  /** Sends at once what would be sent after gathering. For a daemon that ends with its work. */
  async finish(): Promise<void> {
    const { quiet, everyMs, urgent } = this.#settings;
    const nowMs = this.#tools.clock.now();
    const due = dueMs({ quiet, everyMs, urgent, gatherMs: 0 }, this.#sent, this.#pending.details(), nowMs);
    if (due !== undefined && due <= nowMs) await this.#flushing.run();
  }

  async close(): Promise<void> {
    clearTimeout(this.#planner);
    clearTimeout(this.#timer);
    this.#closed.abort();
    clearInterval(this.#heartbeat);
    await this.#flushing.idle();
    // Ends a save that was scheduled, too.
    await this.#saving.run();
    await this.#memory.save(this.#snapshot(), true);
  }

  #pollFailed(mailbox: string, fault: Fault, nowMs: number): void {
    const service = this.#tools.serviceOf(mailbox);
    // A full disk is a trouble of its own.
    if (service === undefined || !this.#concerns(mailbox) || fault.code === "DISK_FULL") return;
    const { begun, left } = this.#services.failed(mailbox, service, fault, nowMs);
    if (left !== undefined) this.#pending.drop(left);
    this.#changes.begin(begun);
  }

  #polled(mailbox: string, nowMs: number): void {
    const over = this.#services.succeeded(mailbox, nowMs);
    if (over !== undefined) this.#changes.end(over);
  }

  #reloaded(mailboxes: readonly ShownMailbox[]): void {
    const polled = new Set(mailboxes.filter(({ paused }) => !paused).map(({ name }) => name));
    for (const key of this.#services.keepOnly((name) => polled.has(name))) this.#pending.drop(key);
  }

  /** Begins only what the settings ask for. Everything that ends is noted. */
  #filtered(): NoticeChanges {
    const pending = this.#pending;
    return {
      begin: (notice) => {
        if (this.#isWanted(notice)) pending.begin(notice);
      },
      settle: (...keys) => pending.settle(...keys),
      end: (over) => pending.end(over),
      endEarlier: (over) => pending.endEarlier(over),
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
    this.#planner ??= setTimeout(() => this.#plan(), PLAN_AFTER_MS);
  }

  #plan(): void {
    clearTimeout(this.#planner);
    this.#planner = undefined;
    clearTimeout(this.#timer);
    if (this.#closed.signal.aborted) return;
    const nowMs = this.#tools.clock.now();
    const due = dueMs(this.#settings, this.#sent, this.#pending.details(), nowMs);
    if (due === undefined) return;
    const waitMs = Math.max(due, this.#retryAtMs) - nowMs;
    this.#timer = setTimeout(
      () => void this.#flushing.run(),
      Math.min(Math.max(waitMs, 0) + 1, LONGEST_TIMER_MS),
    );
  }

  /** Never throws. */
  async #flush(): Promise<void> {
    this.#pending.dropSeen(await this.#memory.notifiedByOthers());
    const nowMs = this.#tools.clock.now();
    const { everyMs } = this.#settings;
    const quietEndMs = quietUntil(this.#settings, nowMs);
    const isUrgentNow = (notice: Notice) => isUrgent(this.#settings, notice, quietEndMs);
    const batch = this.#pending.take(nowMs, (notice) => quietEndMs === undefined || isUrgentNow(notice));
    const hasUrgent = batch.groups.some(({ notices }) => notices.some(isUrgentNow));
    const isUrgentDue = hasUrgent && nextAllowed(this.#sent.lastUrgentMs, everyMs, nowMs) <= nowMs;
    const isDigestDue =
      quietEndMs === undefined && nextAllowed(this.#sent.lastSentMs, everyMs, nowMs) <= nowMs;
    if (batch.keys.size > 0 && (isDigestDue || isUrgentDue)) await this.#send(batch, nowMs, hasUrgent);
    this.#plan();
  }

  async #send(batch: Batch, nowMs: number, isUrgentMessage: boolean): Promise<void> {
    const { clock, emit, stop, othersFailing, sender } = this.#tools;
    const { way } = this.#settings;
    const facts = { kind: way.kind, way: describeWay(way), notices: countOf(batch) };
    this.#pending.sending(batch);
    try {
      const signal = AbortSignal.any([stop, this.#closed.signal]);
      const message = formatMessage(batch, sender(), nowMs);
      const { refused } = await sendMessage(way, message, this.#thread(nowMs), clock, signal);
      this.#pending.sent(batch);
      const lastUrgentMs = isUrgentMessage ? nowMs : this.#sent.lastUrgentMs;
      this.#sent = { lastSentMs: nowMs, lastUrgentMs };
      this.#retryAtMs = 0;
      if (refused !== undefined) return this.#failed(facts, refused);
      this.#failures = 0;
      emit({ type: "notify-succeeded", ...facts, failing: othersFailing(this) });
    } catch (error) {
      this.#pending.unsent();
      const fault = asFault(error);
      if (fault.code !== "STOPPED") this.#failed(facts, fault);
    }
  }

  #failed(facts: { kind: "mail" | "webhook"; way: string; notices: number }, fault: Fault): void {
    const isFirst = this.#failures === 0;
    this.#failures++;
    const { clock, emit, patience } = this.#tools;
    const waitMs = Math.max(
      backoffMs(this.#failures, Math.random(), patience.retryMs),
      fault.retryAfterMs ?? 0,
    );
    this.#retryAtMs = clock.now() + waitMs;
    emit({ type: "notify-failed", ...facts, fault, isFirst, waitMs });
  }

  /** Mails of one day belong together. */
  #thread(nowMs: number): string {
    return `inlet-${Math.floor(nowMs / DAY_MS)}-${this.id}`;
  }

  #snapshot(): MemorySnapshot {
    const failing = this.#services.snapshot().map(([...parts]): [string, string, string] => [...parts]);
    return { ...this.#sent, failing, pending: this.#pending.snapshot() };
  }
}

function countOf({ groups }: Batch): number {
  return groups.reduce((sum, { count }) => sum + count, 0);
}
