/**
 * One way to notify. Notices are gathered, then sent in one message: the first soon, later ones as digests. A message
 * that cannot be sent is tried again with growing pauses, and takes up what happened meanwhile.
 */
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { unlessStopped } from "../base/deadline.ts";
import { asFault, type Fault } from "../base/faults.ts";
import { matchesGlob } from "../base/glob.ts";
import type { DaemonEvent, Emit, ShownMailbox } from "../model/events.ts";
import { describeWay, type Notification } from "../model/notify.ts";
import { Memory } from "./memory.ts";
import { formatMessage, type Sender } from "./message.ts";
import { applyEvent, type Notice, type NoticeChanges } from "./notices.ts";
import type { Batch } from "./pending.ts";
import { dueMs, isUrgent, nextAllowed, quietUntil } from "./schedule.ts";
import { sendMessage } from "./send.ts";
import { Shared } from "./shared.ts";
import { WayState } from "./state.ts";

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
  /** The folder of its saved state. */
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
/** On Redis: other processes wait for changes, such as a delivery that settles a notice. */
const SHARE_AFTER_MS = 250;
/** Events come in thousands: the time of the next message is computed for all of them at once. */
const PLAN_AFTER_MS = 100;
/** On Redis: shows that this process is alive, and reads what others have left to send. */
const HEARTBEAT_MS = 2 * 60_000;
/** On Redis: the wait while another process sends. */
const LOOK_AGAIN_MS = 1_000;
/** Beyond the timeout of a message, its sender has ended or was stopped: another process sends it again. */
const LEASE_MARGIN_MS = 60_000;
/** A message that is being sent may still be accepted after a stop: aborted at once, it would be sent twice. */
const FINISH_MS = 3_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const DAY_MS = 86_400_000;

export class Way {
  readonly id: string;
  readonly #tools: WayTools;
  #settings: Notification;
  readonly #memory: Memory;
  readonly #shared: Shared;
  readonly #changes: NoticeChanges;
  readonly #flushing = new Coalesced(() => this.#flush());
  readonly #closed = new AbortController();
  /** Aborts on the stop of the daemon too. */
  readonly #ended: AbortSignal;
  #isReady = false;
  #failures = 0;
  #retryAtMs = 0;
  #planner: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(id: string, settings: Notification, tools: WayTools) {
    this.id = id;
    this.#settings = settings;
    this.#tools = tools;
    const { clock, folder, isShared, patience, stop } = tools;
    this.#ended = AbortSignal.any([stop, this.#closed.signal]);
    this.#memory = new Memory(folder);
    this.#shared = new Shared({
      memory: this.#memory,
      isShared,
      saveAfterMs: isShared ? SHARE_AFTER_MS : SAVE_AFTER_MS,
      makeState: (snapshot) => new WayState(patience.blipMs, snapshot, clock.now()),
      onChanged: () => this.#planSoon(),
    });
    this.#changes = this.#filtered();
  }

  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** Continues with what earlier runs, and processes that have ended, left behind. */
  async start(): Promise<void> {
    await this.#memory.clean();
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
    // Troubles of processes that have ended meanwhile are over too.
    if (this.#isReady) this.accept({ type: "ready" });
  }

  change(settings: Notification): void {
    this.#settings = settings;
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

  /** Sends at once what would be sent after gathering. For a daemon that ends with its work. */
  async finish(): Promise<void> {
    const { quiet, everyMs, urgent } = this.#settings;
    const nowMs = this.#tools.clock.now();
    const { sent, pending } = this.#shared.state;
    const due = dueMs({ quiet, everyMs, urgent, gatherMs: 0 }, sent, pending.details(), nowMs);
    if (due !== undefined && due <= nowMs) await this.#flushing.run();
  }

  async close(): Promise<void> {
    clearTimeout(this.#planner);
    clearTimeout(this.#timer);
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
      const { begun, left } = services.failed(mailbox, service, fault, nowMs);
      if (left !== undefined) pending.drop(left);
      if (this.#isWanted(begun)) pending.begin(begun);
    });
  }

  #polled(mailbox: string, nowMs: number): void {
    this.#shared.change(({ services, pending }) => {
      const over = services.succeeded(mailbox, nowMs);
      if (over !== undefined) pending.end(over);
    });
  }

  /** Other processes may have other mailboxes: only those of this one count. */
  #reloaded(mailboxes: readonly ShownMailbox[]): void {
    const polled = new Set(mailboxes.filter(({ paused }) => !paused).map(({ name }) => name));
    const before = new Set(this.#tools.mailboxes().keys());
    this.#shared.change(({ services, pending }) => {
      const left = services.keepOnly((name) => polled.has(name) || !before.has(name));
      for (const key of left) pending.drop(key);
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
    this.#planner ??= setTimeout(() => this.#plan(), PLAN_AFTER_MS);
  }

  #plan(): void {
    clearTimeout(this.#planner);
    this.#planner = undefined;
    clearTimeout(this.#timer);
    if (this.#closed.signal.aborted) return;
    const nowMs = this.#tools.clock.now();
    const { sent, pending } = this.#shared.state;
    const due = dueMs(this.#settings, sent, pending.details(), nowMs);
    if (due === undefined) return;
    const waitMs = Math.max(due, this.#retryAtMs) - nowMs;
    this.#timer = setTimeout(
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
    return { by: this.#shared.token, nowMs, leaseMs: this.#settings.way.timeoutMs + LEASE_MARGIN_MS };
  }

  /** `undefined` if nothing is due. */
  #select({ pending, sent }: WayState, nowMs: number): Batch | undefined {
    const { everyMs } = this.#settings;
    const quietEndMs = quietUntil(this.#settings, nowMs);
    const isWanted = (notice: Notice) => quietEndMs === undefined || this.#isUrgent(notice, nowMs);
    const batch = pending.select(nowMs, isWanted);
    const isUrgentDue =
      this.#hasUrgent(batch, nowMs) && nextAllowed(sent.lastUrgentMs, everyMs, nowMs) <= nowMs;
    const isDigestDue = quietEndMs === undefined && nextAllowed(sent.lastSentMs, everyMs, nowMs) <= nowMs;
    return batch.groups.length > 0 && (isDigestDue || isUrgentDue) ? batch : undefined;
  }

  #hasUrgent({ groups }: Batch, nowMs: number): boolean {
    return groups.some(({ notices }) => notices.some((notice) => this.#isUrgent(notice, nowMs)));
  }

  #isUrgent(notice: Notice, nowMs: number): boolean {
    return isUrgent(this.#settings, notice, quietUntil(this.#settings, nowMs));
  }

  async #send(batch: Batch, nowMs: number): Promise<void> {
    const { clock, emit, othersFailing, sender } = this.#tools;
    const { token } = this.#shared;
    const { way } = this.#settings;
    const facts = { kind: way.kind, way: describeWay(way), notices: countOf(batch) };
    const isUrgentMessage = this.#hasUrgent(batch, nowMs);
    const aborter = new AbortController();
    try {
      const message = formatMessage(batch, sender(), nowMs);
      const sending = sendMessage(way, message, this.#thread(nowMs), clock, aborter.signal);
      const { refused } = await unlessStopped(sending, FINISH_MS, this.#ended);
      this.#shared.change((state) => {
        const lastUrgentMs = isUrgentMessage ? nowMs : state.sent.lastUrgentMs;
        state.succeeded(token, batch, { lastSentMs: nowMs, lastUrgentMs });
      });
      await this.#shared.save();
      this.#retryAtMs = 0;
      if (refused !== undefined) return this.#failed(facts, refused);
      this.#failures = 0;
      emit({ type: "notify-succeeded", ...facts, failing: othersFailing(this) });
    } catch (error) {
      this.#shared.change((state) => state.failed(token));
      await this.#shared.save();
      const fault = asFault(error);
      if (fault.code !== "STOPPED") this.#failed(facts, fault);
    } finally {
      aborter.abort();
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
}

function countOf({ groups }: Batch): number {
  return groups.reduce((sum, { count }) => sum + count, 0);
}
