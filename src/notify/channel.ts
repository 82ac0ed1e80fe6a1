/**
 * One channel for notifications. It derives notices from the journal, gathers them, and sends them in one message: the
 * first soon, later ones as digests. Its notices are saved together with its positions in the journal. After a kill, it
 * reads the lines after the saved positions again, so no notice is lost.
 */
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { LONGEST_TIMER_MS, unlessStopped } from "../base/deadline.ts";
import { systemDisk, tryRead } from "../base/disk.ts";
import { replaceDurably } from "../base/durable.ts";
import { asFault, type Fault } from "../base/faults.ts";
import { matchesGlob } from "../base/glob.ts";
import { random } from "../base/random.ts";
import type { Positions } from "../base/tail.ts";
import { clearTimeout, setTimeout, type Timer } from "../base/timers.ts";
import { DAY_MS } from "../base/timetable.ts";
import type { Emit } from "../model/events.ts";
import { type ChannelSettings, describeChannel } from "../model/notify.ts";
import { formatMessage, type MessageOrigin } from "./message.ts";
import { changesOfLine, type Notice, type NoticeChange } from "./notices.ts";
import { Schedule } from "./schedule.ts";
import { sendMessage } from "./send.ts";
import { type Batch, ChannelState, placeholderFor } from "./state.ts";

export interface NotifyPatience {
  /** Pause after the first failure; it grows with each further one. */
  readonly retryMs: number;
  /** A failure of a service or a hand-off that is over within this time is not reported. */
  readonly blipMs: number;
}

/** The journal of all processes. */
export interface JournalReader {
  /** Passes on each line after the positions, and moves the positions past it. False if some could not be read. */
  read(positions: Positions, onLine: (line: object) => void): Promise<boolean>;
  /** The positions after all lines. */
  end(): Promise<Positions>;
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
  readonly journal: JournalReader;
  /** Whether this process sends and saves. The others only read. */
  isSender(): boolean;
  origin(): MessageOrigin;
  /** The address of a mailbox that is configured. */
  addressOf(mailbox: string): string | undefined;
  /** How many other channels fail now. */
  othersFailing(channel: Channel): number;
}

const SAVE_AFTER_MS = 2_000;
/** New positions alone are saved this often. */
const SAVE_POSITIONS_MS = 60_000;
/** After a stop, the server has this long to accept the current message. Else it is sent again at the next start. */
const FINISH_MS = 3_000;
const MAX_RECENT = 10_000;

export class Channel {
  readonly id: string;
  readonly #tools: ChannelTools;
  #settings: ChannelSettings;
  #state = new ChannelState();
  #isLoaded = false;
  #isBehind = false;
  /** Updates during the loading, or during the sending of a message: they apply to the state after it as well. */
  #recent: ((state: ChannelState) => void)[] | undefined = [];
  readonly #working = new Coalesced(() => this.#work());
  readonly #saving = new Coalesced(() => this.#save(), SAVE_AFTER_MS);
  readonly #closed = new AbortController();
  /** Aborts on the stop of the daemon too. */
  readonly #ended: AbortSignal;
  #isFinishing = false;
  #savedRevision = -1;
  #savedMs = 0;
  #failures = 0;
  /** Some recipients of the last mail were refused. The others have it, so it is not sent again. */
  #isPartlyRefused = false;
  #retryAtMs = 0;
  /** When the message that is being sent was begun. */
  #triedMs: number | undefined;
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

  /** When its next message is to be tried; `undefined` if there is none, or another process sends it. */
  get dueMs(): number | undefined {
    if (this.#triedMs !== undefined) return this.#triedMs + this.#settings.channel.timeoutMs;
    return this.#tools.isSender() ? this.#dueMs(this.#tools.clock.now()) : undefined;
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
    return this.#wants(change) && this.update((state) => state.apply(change));
  }

  /** True if the state has changed. */
  update(update: (state: ChannelState) => void): boolean {
    const { revision } = this.#state;
    update(this.#state);
    if ((this.#recent?.length ?? 0) < MAX_RECENT) this.#recent?.push(update);
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
    // Until this succeeds, messages are sent without the saved state.
    if (!this.#isLoaded) await this.#load().catch(() => {});
    if (this.#isLoaded) await this.#read();
    const nowMs = this.#tools.clock.now();
    const due = this.#tools.isSender() ? this.#dueMs(nowMs) : undefined;
    if (due !== undefined && due <= nowMs) await this.#send(nowMs);
    this.#plan();
  }

  async #load(): Promise<void> {
    const { path, journal } = this.#tools;
    const saved = ChannelState.parse((await tryRead(systemDisk, path)) ?? "");
    const state = saved ?? new ChannelState();
    if (saved === undefined) state.positions = await journal.end();
    this.#savedRevision = saved?.revision ?? -1;
    this.#follow(state);
    this.#recent = undefined;
    this.#isLoaded = true;
  }

  #follow(state: ChannelState): void {
    for (const update of this.#recent ?? []) update(state);
    this.#state = state;
  }

  async #read(): Promise<void> {
    const { journal, clock } = this.#tools;
    const onLine = (line: object) => {
      for (const change of changesOfLine(line, clock.now())) {
        if (this.#wants(change)) this.#state.apply(change);
      }
    };
    // Then it is behind, and reads again.
    this.#isBehind = !(await journal.read(this.#state.positions, onLine).catch(() => false));
    const isOld = clock.now() - this.#savedMs > SAVE_POSITIONS_MS;
    if (isOld || this.#state.revision !== this.#savedRevision) this.#saving.schedule();
  }

  #wants(change: NoticeChange): boolean {
    if (change.type === "begin") return this.#isWanted(change.notice);
    return change.type !== "failed" || this.#isWanted({ kind: "service", mailbox: change.mailbox });
  }

  #isWanted({ kind, mailbox }: Pick<Notice, "kind" | "mailbox">): boolean {
    return this.#settings.on.includes(kind) && (mailbox === undefined || this.#concerns(mailbox));
  }

  #concerns(mailbox: string): boolean {
    const { mailboxes: patterns } = this.#settings;
    const names = [mailbox, this.#tools.addressOf(mailbox) ?? mailbox].map((name) => name.toLowerCase());
    return (
      patterns?.some((pattern) => names.some((name) => matchesGlob(name, pattern.toLowerCase()))) ?? true
    );
  }

  #plan(): void {
    clearTimeout(this.#timer);
    const nowMs = this.#tools.clock.now();
    const due = this.#ended.aborted || !this.#tools.isSender() ? undefined : this.#dueMs(nowMs);
    if (due === undefined) {
      this.#settle();
      return;
    }
    this.#timer = setTimeout(() => this.wake(), Math.min(Math.max(due - nowMs, 0) + 1, LONGEST_TIMER_MS));
  }

  /** A failure that no message would end is over. */
  #settle(): void {
    if (this.#failures === 0 || this.#ended.aborted) return;
    this.#failures = 0;
    this.#retryAtMs = 0;
    const { emit, othersFailing } = this.#tools;
    emit({ type: "notify-settled", channel: this.described, failing: othersFailing(this) });
  }

  #dueMs(nowMs: number): number | undefined {
    const wanted = this.#state.details().filter((notice) => this.#isWanted(notice));
    const due = this.#scheduleAt(nowMs).dueMs(wanted);
    return due === undefined ? undefined : Math.max(due, this.#retryAtMs);
  }

  #scheduleAt(nowMs: number): Schedule {
    const times = this.#isFinishing ? { ...this.#settings, gatherMs: 0 } : this.#settings;
    return new Schedule(times, this.#state.sent, nowMs);
  }

  async #send(nowMs: number): Promise<void> {
    const { clock, emit, othersFailing, origin } = this.#tools;
    const { channel } = this.#settings;
    const schedule = this.#scheduleAt(nowMs);
    const isChosen = (notice: Notice) => this.#isWanted(notice) && schedule.isAllowed(notice);
    const batch = this.#state.select(nowMs, isChosen);
    const notices = batch.groups.reduce((sum, { count }) => sum + count, 0);
    const facts = { kind: channel.kind, channel: describeChannel(channel), notices };
    const aborter = new AbortController();
    const sent = this.#state.clone();
    this.#recent ??= [];
    this.#triedMs = nowMs;
    try {
      const message = formatMessage(batch, origin(), nowMs);
      // Mails of one day belong together.
      const thread = `inlet-${Math.floor(nowMs / DAY_MS)}-${this.id}`;
      const sending = sendMessage(channel, message, thread, clock, aborter.signal);
      const { refused } = await unlessStopped(sending, FINISH_MS, this.#ended);
      const lastUrgentMs = hasUrgent(batch, schedule) ? nowMs : this.#state.sent.lastUrgentMs;
      sent.report(batch, { lastSentMs: nowMs, lastUrgentMs });
      this.#follow(sent);
      this.#retryAtMs = 0;
      this.#failures = 0;
      const isFirst = !this.#isPartlyRefused;
      this.#isPartlyRefused = refused !== undefined;
      await this.#saving.run();
      if (refused !== undefined) emit({ type: "recipients-refused", ...facts, fault: refused, isFirst });
      else emit({ type: "notify-succeeded", ...facts, failing: othersFailing(this) });
    } catch (error) {
      const fault = asFault(error);
      if (fault.code !== "STOPPED") this.#failed(facts, fault);
    } finally {
      this.#triedMs = undefined;
      aborter.abort();
      if (this.#isLoaded) this.#recent = undefined;
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

  /** A failure is repeated by `retry`. At worst, a message is sent again after a crash. */
  async #save(): Promise<void> {
    const { path, temporary, clock, isSender } = this.#tools;
    const { revision } = this.#state;
    if (!isSender() || !this.#isLoaded) return;
    try {
      await replaceDurably(path, this.#state.serialize(), 0o600, temporary);
      this.#savedRevision = revision;
      this.#savedMs = clock.now();
    } catch {
      // See above.
    }
  }
}

function hasUrgent({ groups }: Batch, schedule: Schedule): boolean {
  return groups.some(({ kind, isOver, count, notices }) => {
    const others = count > notices.length ? [{ ...placeholderFor(kind), isOver }] : [];
    return [...notices, ...others].some((notice) => schedule.isUrgent(notice));
  });
}
