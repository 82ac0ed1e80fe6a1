/**
 * One channel for notifications. It derives notices from the journal, gathers them, and sends them in one message: the
 * first soon, later ones as digests. Its notices are saved together with its positions in the journal. After a kill, it
 * reads the lines after the saved positions again, so no notice is lost.
 */
import { backoffMs, restMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { unlessStopped } from "../base/deadline.ts";
import { systemDisk, tryRead } from "../base/disk.ts";
import { replaceDurably } from "../base/durable.ts";
import { asFault, type Fault } from "../base/faults.ts";
import { matchesGlob } from "../base/normal-form.ts";
import { random } from "../base/random.ts";
import { findEnd, readTail, type TailedFolder } from "../base/tail.ts";
import { clearTimeout, monotonicMs, setTimeout, type Timer } from "../base/timers.ts";
import { DAY_MS } from "../base/timetable.ts";
import type { Emit } from "../model/events.ts";
import { type ChannelSettings, describeChannel } from "../model/notify.ts";
import { formatMessage, type MessageOrigin } from "./message.ts";
import { changeOfLine, mailboxIn, type Notice, type NoticeChange } from "./notices.ts";
import { scheduleAt } from "./schedule.ts";
import { sendMessage } from "./send.ts";
import { ChannelState } from "./state.ts";

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
  /** The file of its saved state. */
  readonly path: string;
  /** A folder for temporary files. */
  readonly temporary: string;
  readonly patience: NotifyPatience;
  /** The journal of all processes. */
  readonly journal: TailedFolder<object>;
  /** Whether this process sends and saves. The others only read. */
  isSender(): boolean;
  origin(): MessageOrigin;
  /** The address of a mailbox that is configured. */
  addressOf(mailbox: string): string | undefined;
  /** What people call it. */
  labelOf(mailbox: string): string;
  /** How many other channels fail now. */
  othersFailing(channel: Channel): number;
}

const SAVE_AFTER_MS = 2_000;
/** New positions alone are saved this often. */
const SAVE_POSITIONS_MS = 60_000;
/** The clock may be set while a message waits, so its time is computed again this often. */
const PLAN_EVERY_MS = 60_000;
/** A notice of a later time was written by a clock that was ahead. */
const LATEST_MS = 10 * 60_000;
/** After a stop, the server has this long to accept the current message. Else it is sent again at the next start. */
const FINISH_MS = 3_000;
const MAX_EARLY = 10_000;

export class Channel {
  readonly id: string;
  readonly #tools: ChannelTools;
  #settings: ChannelSettings;
  #state = new ChannelState();
  #isLoaded = false;
  /** Changes that came before the saved state could be loaded. Until it is, messages are sent without it. */
  readonly #early: NoticeChange[] = [];
  /** The last reading of the journal failed, or did not reach its end. */
  #isBehind = false;
  readonly #working = new Coalesced(() => this.#work());
  readonly #saving = new Coalesced(() => this.#save(), SAVE_AFTER_MS);
  readonly #closed = new AbortController();
  /** Aborts on the stop of the daemon too. */
  readonly #ended: AbortSignal;
  #isFinishing = false;
  #savedRevision = -1;
  #savedMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  /** Some recipients of the last mail were refused. The others have it, so it is not sent again. */
  #isPartlyRefused = false;
  /** On the monotonic clock, as the next two. */
  #retryAtMs = 0;
  /** When the sending of the current message began. */
  #sendingMs: number | undefined;
  /** When it next looks for a message that is due; `undefined` if none waits, or another process sends. */
  #plannedMs: number | undefined;
  #timer: Timer | undefined;

  constructor(id: string, settings: ChannelSettings, tools: ChannelTools) {
    this.id = id;
    this.#settings = settings;
    this.#tools = tools;
    this.#ended = AbortSignal.any([tools.stop, this.#closed.signal]);
  }

  /** The processes that have a trouble of their own. */
  get processes(): string[] {
    return this.#state.processes;
  }

  get described(): string {
    return describeChannel(this.#settings.channel);
  }

  get isFailing(): boolean {
    return this.#failures > 0 || this.#isPartlyRefused;
  }

  /** When it next tries a message, or the current one times out, on the monotonic clock. */
  get dueMs(): number | undefined {
    if (this.#sendingMs !== undefined) return this.#sendingMs + this.#settings.channel.timeoutMs;
    return this.#plannedMs;
  }

  /** Continues from the saved state. A new channel begins at the end of the journal. */
  async load(): Promise<void> {
    this.#isLoaded = false;
    await this.#working.run();
  }

  /** Reads new lines, and sends what is due. */
  wake(): void {
    if (!this.#ended.aborted) void this.#working.run();
  }

  /** Repeats what the disk has refused. */
  retry(): void {
    if (this.#isBehind || !this.#isLoaded) this.wake();
    if (this.#state.revision !== this.#savedRevision) this.#saving.schedule();
  }

  change(settings: ChannelSettings): void {
    this.#settings = settings;
    this.#isPartlyRefused = false;
    this.#retryAtMs = 0;
    this.wake();
  }

  /** True if the change is new here. */
  accept(change: NoticeChange): boolean {
    const wanted = this.#wanted(change);
    if (!this.#isLoaded && this.#early.length < MAX_EARLY) this.#early.push(wanted);
    return this.update((state) => state.apply(wanted));
  }

  /** True if the state has changed. */
  update(update: (state: ChannelState) => void): boolean {
    const { revision } = this.#state;
    update(this.#state);
    const isNew = this.#state.revision !== revision;
    if (isNew) this.wake();
    return isNew;
  }

  /** Sends due notices without gathering. For `inlet once`, before it ends. */
  async finish(): Promise<void> {
    this.#isFinishing = true;
    this.#retryAtMs = 0;
    await this.#working.run();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    clearTimeout(this.#timer);
    await this.#working.idle();
    await this.#saving.run();
  }

  /** Never throws. */
  async #work(): Promise<void> {
    if (this.#ended.aborted) return;
    // Repeated by `retry`.
    if (!this.#isLoaded) await this.#load().catch(() => {});
    if (this.#isLoaded) await this.#read();
    const nowMs = this.#tools.clock.now();
    const dueMs = this.#dueMs(nowMs);
    if (dueMs !== undefined && dueMs <= nowMs) await this.#send(nowMs);
    this.#plan();
  }

  async #load(): Promise<void> {
    const { path, journal } = this.#tools;
    const saved = ChannelState.parse((await tryRead(systemDisk, path)) ?? "");
    const state = saved ?? new ChannelState();
    if (saved === undefined) state.positions = await findEnd(journal);
    this.#savedRevision = saved?.revision ?? -1;
    for (const change of this.#early.splice(0)) state.apply(change);
    this.#state = state;
    this.#isLoaded = true;
  }

  async #read(): Promise<void> {
    const { journal, clock } = this.#tools;
    const onLine = (line: object) => {
      const change = changeOfLine(line, clock.now());
      if (change !== undefined) this.#state.apply(this.#wanted(change));
    };
    // `retry` reads again.
    this.#isBehind = !(await readTail(journal, this.#state.positions, onLine).catch(() => false));
    const isOld = monotonicMs() - this.#savedMs > SAVE_POSITIONS_MS;
    if (isOld || this.#state.revision !== this.#savedRevision) this.#saving.schedule();
  }

  /** The change as far as this channel is configured for it. */
  #wanted(change: NoticeChange): NoticeChange {
    const owner = mailboxIn(change.by ?? "");
    return { ...change, begin: change.begin.filter((notice) => this.#isWanted(notice, owner)) };
  }

  /** `owner`: the mailbox that a notice about a whole service belongs to. */
  #isWanted(notice: Notice, owner?: string): boolean {
    const { kind, mailbox = owner } = notice;
    const { on, mailboxes: patterns } = this.#settings;
    if (!on.includes(kind)) return false;
    if (mailbox === undefined || patterns === undefined) return true;
    const { labelOf, addressOf } = this.#tools;
    const names = [labelOf(mailbox), addressOf(mailbox) ?? mailbox].map((each) => each.toLowerCase());
    return patterns.some((pattern) => names.some((name) => matchesGlob(name, pattern.toLowerCase())));
  }

  #plan(): void {
    clearTimeout(this.#timer);
    if (this.#ended.aborted) return;
    const nowMs = this.#tools.clock.now();
    const dueMs = this.#dueMs(nowMs);
    this.#plannedMs = undefined;
    if (dueMs !== undefined) {
      const waitMs = Math.min(Math.max(dueMs - nowMs, 0) + 1, PLAN_EVERY_MS);
      this.#plannedMs = monotonicMs() + waitMs;
      this.#timer = setTimeout(() => this.wake(), waitMs);
    } else if (this.#failures > 0) {
      // What could not be sent is no longer true, so no further message would end the failure.
      this.#failures = 0;
      this.#retryAtMs = 0;
      this.#report(0);
    }
  }

  #dueMs(nowMs: number): number | undefined {
    if (!this.#tools.isSender()) return undefined;
    const dueMs = this.#scheduleAt(nowMs).dueMs(this.#wantedNotices(nowMs));
    const retryMs = nowMs + this.#retryAtMs - monotonicMs();
    return dueMs === undefined ? undefined : Math.max(dueMs, retryMs);
  }

  #wantedNotices(nowMs: number): Notice[] {
    const wanted = this.#state.pending().filter((notice) => this.#isWanted(notice));
    // Gathered long enough.
    const atMs = nowMs - this.#settings.gatherMs;
    return wanted.map((notice) => (notice.atMs > nowMs + LATEST_MS ? { ...notice, atMs } : notice));
  }

  #scheduleAt(nowMs: number) {
    const times = this.#isFinishing ? { ...this.#settings, gatherMs: 0 } : this.#settings;
    return scheduleAt(nowMs, times, this.#state.sent);
  }

  async #send(nowMs: number): Promise<void> {
    const { clock, origin, labelOf } = this.#tools;
    const { channel } = this.#settings;
    const labelled = ({ mailbox, mailboxes, ...notice }: Notice): Notice => {
      const others = mailboxes && { mailboxes: mailboxes.map(labelOf) };
      return { ...notice, mailbox: mailbox && labelOf(mailbox), ...others };
    };
    const state = this.#state;
    const schedule = this.#scheduleAt(nowMs);
    const notices = this.#wantedNotices(nowMs).filter((it) => it.atMs <= nowMs && schedule.isAllowed(it));
    const aborter = new AbortController();
    this.#sendingMs = monotonicMs();
    state.report(notices);
    try {
      const message = formatMessage(notices.map(labelled), origin(), nowMs);
      // Mails of one day belong together.
      const thread = `inlet-${Math.floor(nowMs / DAY_MS)}-${this.id}`;
      const sending = sendMessage(channel, message, thread, clock, aborter.signal);
      const { refused } = await unlessStopped(sending, FINISH_MS, this.#ended);
      const isUrgent = notices.some((notice) => schedule.isUrgent(notice));
      state.sent = { lastSentMs: nowMs, lastUrgentMs: isUrgent ? nowMs : state.sent.lastUrgentMs };
      this.#sendingMs = undefined;
      this.#retryAtMs = 0;
      this.#failures = 0;
      const isFirst = !this.#isPartlyRefused;
      this.#isPartlyRefused = refused !== undefined;
      await this.#saving.run();
      this.#report(notices.length, refused && { fault: refused, isFirst, waitMs: undefined });
    } catch (error) {
      this.#sendingMs = undefined;
      state.takeBack(notices);
      const fault = asFault(error);
      if (fault.code !== "STOPPED") this.#retryAfter(notices.length, fault);
    } finally {
      aborter.abort();
    }
  }

  #retryAfter(notices: number, fault: Fault): void {
    this.#failures++;
    const { patience } = this.#tools;
    const waitMs = Math.max(backoffMs(this.#failures, random(), patience.retryMs), restMs(fault));
    this.#retryAtMs = monotonicMs() + waitMs;
    this.#report(notices, { fault, isFirst: this.#failures === 1, waitMs });
  }

  #report(notices: number, failure?: { fault: Fault; isFirst: boolean; waitMs: number | undefined }): void {
    const { emit, othersFailing } = this.#tools;
    const facts = { kind: this.#settings.channel.kind, channel: this.described, notices };
    if (failure !== undefined) emit({ type: "notify-failed", ...facts, ...failure });
    else emit({ type: "notify-succeeded", ...facts, failing: othersFailing(this) });
  }

  /** `retry` saves again after a failure. Not while a message is sent: its notices already count as reported. */
  async #save(): Promise<void> {
    const { path, temporary, isSender } = this.#tools;
    const { revision } = this.#state;
    const isSending = this.#sendingMs !== undefined;
    if (!isSender() || !this.#isLoaded || isSending) return;
    try {
      await replaceDurably(path, this.#state.serialize(), 0o600, temporary);
      this.#savedRevision = revision;
      this.#savedMs = monotonicMs();
    } catch {
      // `retry` saves again. At worst, a message is sent again after a crash.
    }
  }
}
