/**
 * The engine for one machine: everything in memory, nothing to install.
 *
 * A download job is queued, delayed until its next attempt, or running. Slots are shared fairly between services, then
 * between mailboxes, so that a service that stalls never delays the rest. Among equals, the job that expires first runs.
 */

import { WaitGroup } from "../base/concurrency.ts";
import { clearTimeout, monotonicMs, setTimeout, type Timer } from "../base/timers.ts";
import { NO_WAIT, type PollSchedule, type TransferJob } from "../model/job.ts";
import { PollQueue } from "./poll-queue.ts";
import type { EngineOptions, Handlers, JobQueue } from "./port.ts";
import { type Holder, JobSlots } from "./slots.ts";

export interface EmbeddedOptions extends Pick<EngineOptions, "slots" | "services"> {
  /** Between 0 and 1, for jitter. */
  readonly random: () => number;
}

/** A poll is up to this share of its interval early or late. */
const JITTER = 0.1;

export function createEmbeddedQueue(options: EmbeddedOptions): JobQueue {
  return new EmbeddedQueue(options);
}

interface ScheduledPoll {
  readonly everyMs: number;
  /** The last poll failed, and the next one is later than the interval says. */
  isDeferred: boolean;
  timer: Timer | undefined;
}

class EmbeddedQueue implements JobQueue {
  readonly #options: EmbeddedOptions;
  readonly #stopping = new AbortController();
  /** By mailbox, each sorted by expiry, latest first: the next job is taken from the end. */
  readonly #queues = new Map<string, TransferJob[]>();
  /** Keys of all queued jobs. */
  readonly #queued = new Set<string>();
  readonly #delayed = new Map<string, { job: TransferJob; timer: Timer }>();
  readonly #running = new Set<string>();
  readonly #slots: JobSlots;
  readonly #pollQueue: PollQueue;
  /** Running jobs that have to run once more. */
  readonly #again = new Set<string>();
  /** Services that asked for fewer requests, and until when. */
  readonly #limited = new Map<string, { untilMs: number; timer: Timer }>();
  readonly #polls = new Map<string, ScheduledPoll>();
  /** The wait that the last poll of a mailbox returned. */
  readonly #waitMs = new Map<string, number>();
  /** By service that asked for a pause between polls: when it ends. */
  readonly #pollsLimitedUntilMs = new Map<string, number>();
  readonly #work = new WaitGroup();
  /** Resolve the pending calls of `idle`. */
  #idleCalls: (() => void)[] = [];
  #handlers: Handlers | undefined;
  #closed = false;

  constructor(options: EmbeddedOptions) {
    this.#options = options;
    this.#slots = new JobSlots(options.slots, options.services);
    this.#pollQueue = new PollQueue(options.services, (mailbox) => this.#pollOnce(mailbox));
  }

  async start(handlers: Handlers): Promise<void> {
    this.#handlers = handlers;
    this.#fill();
  }

  async schedule(polls: readonly PollSchedule[]): Promise<void> {
    const wanted = new Map(polls.map((poll) => [poll.mailbox, poll.everyMs]));
    this.#pollsLimitedUntilMs.clear();
    for (const [mailbox, { everyMs, isDeferred, timer }] of this.#polls) {
      if (wanted.get(mailbox) === everyMs && !isDeferred) continue;
      clearTimeout(timer);
      this.#polls.delete(mailbox);
      this.#waitMs.delete(mailbox);
      this.#pollQueue.drop(mailbox);
    }
    for (const { mailbox, everyMs } of polls) {
      if (!this.#polls.has(mailbox)) this.#track(() => this.#poll(mailbox, everyMs, true));
    }
    // There may be more slots now.
    this.#fill();
  }

  async pollNow(mailboxes: readonly string[]): Promise<void> {
    const poll = (mailbox: string) => {
      const { everyMs, timer } = this.#polls.get(mailbox) ?? {};
      clearTimeout(timer);
      const polled = this.#pollQueue.add(mailbox, true);
      return everyMs === undefined ? polled : this.#poll(mailbox, everyMs, false, polled);
    };
    const polled = Promise.all(mailboxes.map(poll)).then(() => {});
    this.#track(() => polled);
    await polled;
  }

  async add(job: TransferJob): Promise<void> {
    const { key } = job;
    const known = this.#queued.has(key) || this.#delayed.has(key) || this.#running.has(key);
    if (this.#closed || known) return;
    this.#queued.add(key);
    const queue = this.#queues.get(job.mailbox) ?? [];
    this.#queues.set(job.mailbox, queue);
    queue.splice(indexFor(queue, job), 0, job);
    this.#fill();
  }

  async runNow(job: TransferJob): Promise<void> {
    if (this.#running.has(job.key)) this.#again.add(job.key);
    clearTimeout(this.#delayed.get(job.key)?.timer);
    this.#delayed.delete(job.key);
    await this.add(job);
  }

  async depth(): Promise<number | undefined> {
    const waiting = [...this.#queues].filter(([mailbox]) => !this.#isLimited(mailbox));
    return waiting.reduce((sum, [, queue]) => sum + queue.length, 0);
  }

  async stalled(): Promise<readonly string[]> {
    return [...this.#queues.keys()].flatMap((mailbox) => {
      const service = this.#slots.serviceOf(mailbox);
      return this.#limited.has(service) || !this.#slots.isFreeFor({ mailbox, service }) ? [] : [service];
    });
  }

  async idle(): Promise<void> {
    if (this.#isIdle()) return;
    await new Promise<void>((resolve) => this.#idleCalls.push(resolve));
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    for (const timers of [this.#polls, this.#delayed, this.#limited]) {
      for (const { timer } of timers.values()) clearTimeout(timer);
    }
    this.#polls.clear();
    this.#delayed.clear();
    this.#queued.clear();
    this.#queues.clear();
    this.#pollQueue.close();
    const grace = setTimeout(() => this.#stopping.abort(), graceMs);
    await this.#work.wait();
    clearTimeout(grace);
  }

  /**
   * Waits for a poll, and sets the timer for the next one. After its first poll each mailbox gets a random offset within
   * the interval, so that polls are spread out.
   */
  async #poll(mailbox: string, everyMs: number, isFirst: boolean, polled?: Promise<void>): Promise<void> {
    const poll: ScheduledPoll = { everyMs, isDeferred: false, timer: undefined };
    this.#polls.set(mailbox, poll);
    await (polled ?? (this.#pollLimitMs(mailbox) > 0 ? undefined : this.#pollQueue.add(mailbox)));
    if (this.#polls.get(mailbox) !== poll) return;
    const { random } = this.#options;
    const share = isFirst ? JITTER + (1 - JITTER) * random() : 1 + (random() * 2 - 1) * JITTER;
    const waitMs = this.#waitMs.get(mailbox) ?? 0;
    poll.isDeferred = waitMs > everyMs;
    poll.timer = setTimeout(
      () => this.#track(() => this.#poll(mailbox, everyMs, false)),
      Math.max(everyMs * share, Math.max(waitMs, this.#pollLimitMs(mailbox)) * (1 + JITTER * random())),
    );
  }

  /** How long the service of the mailbox must not be polled. */
  #pollLimitMs(mailbox: string): number {
    const untilMs = this.#pollsLimitedUntilMs.get(this.#slots.serviceOf(mailbox)) ?? 0;
    return Math.max(0, untilMs - monotonicMs());
  }

  async #pollOnce(mailbox: string): Promise<void> {
    const { waitMs, limitMs = 0 } = (await this.#handlers?.poll(mailbox, this.#stopping.signal)) ?? NO_WAIT;
    if (waitMs > 0) this.#waitMs.set(mailbox, waitMs);
    else this.#waitMs.delete(mailbox);
    if (limitMs <= this.#pollLimitMs(mailbox)) return;
    const service = this.#slots.serviceOf(mailbox);
    this.#pollsLimitedUntilMs.set(service, monotonicMs() + limitMs);
    this.#pollQueue.dropService(service);
  }

  /** Starts the next jobs while slots are free. */
  #fill(): void {
    while (this.#handlers !== undefined) {
      const next = this.#next();
      if (next === undefined) return;
      const { job, holder } = next;
      this.#running.add(job.key);
      this.#slots.take(holder);
      this.#track(() => this.#download(job, holder));
    }
  }

  /** Fewest slots held by the service first, then by the mailbox; among equals the job that expires first. */
  #next(): { readonly job: TransferJob; readonly holder: Holder } | undefined {
    let best: { readonly queue: TransferJob[]; readonly holder: Holder; readonly rank: Rank } | undefined;
    for (const [mailbox, queue] of this.#queues) {
      const holder = { mailbox, service: this.#slots.serviceOf(mailbox) };
      const job = queue.at(-1);
      const { service } = holder;
      if (job === undefined || this.#limited.has(service) || !this.#slots.isFreeFor(holder)) continue;
      const held = [this.#slots.heldByService(service), this.#slots.heldByMailbox(mailbox)] as const;
      const rank: Rank = [...held, job.expiresMs];
      if (best === undefined || isBefore(rank, best.rank)) best = { queue, holder, rank };
    }
    const job = best?.queue.pop();
    if (best === undefined || job === undefined) return undefined;
    this.#queued.delete(job.key);
    if (best.queue.length === 0) this.#queues.delete(job.mailbox);
    return { job, holder: best.holder };
  }

  async #download(job: TransferJob, holder: Holder): Promise<void> {
    const freeSlot = () => {
      if (this.#slots.free(holder)) this.#fill();
    };
    const next = await this.#handlers?.download(job, this.#stopping.signal, freeSlot);
    this.#running.delete(job.key);
    this.#slots.giveBack(holder);
    const limitMs = next?.kind === "again" ? (next.limitMs ?? 0) : 0;
    if (!this.#closed && limitMs > 0) this.#limit(holder.service, limitMs);
    if (this.#again.delete(job.key) && !this.#closed) await this.add(job);
    else if (next?.kind === "again" && !this.#closed) {
      const timer = setTimeout(() => {
        this.#delayed.delete(job.key);
        void this.add(job);
      }, next.afterMs);
      this.#delayed.set(job.key, { job, timer });
    }
    this.#fill();
  }

  #isIdle(): boolean {
    return this.#work.size === 0 && [...this.#queues.keys()].every((mailbox) => this.#isLimited(mailbox));
  }

  #isLimited(mailbox: string): boolean {
    return this.#limited.has(this.#slots.serviceOf(mailbox));
  }

  /** Never shortens a limit. */
  #limit(service: string, limitMs: number): void {
    const before = this.#limited.get(service);
    const untilMs = monotonicMs() + limitMs;
    if (before !== undefined && before.untilMs >= untilMs) return;
    clearTimeout(before?.timer);
    const end = () => {
      this.#limited.delete(service);
      this.#fill();
    };
    this.#limited.set(service, { untilMs, timer: setTimeout(end, limitMs) });
  }

  #track(work: () => Promise<void>): void {
    void this.#work.add(work()).finally(() => {
      if (!this.#isIdle()) return;
      for (const resolve of this.#idleCalls) resolve();
      this.#idleCalls = [];
    });
  }
}

type Rank = readonly [heldByService: number, heldByMailbox: number, expiresMs: number];

function isBefore(a: Rank, b: Rank): boolean {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at >= 0 && (a[at] ?? 0) < (b[at] ?? 0);
}

/** The index at which to insert a job; among jobs that expire together the older one runs first. */
function indexFor(queue: readonly TransferJob[], { expiresMs }: TransferJob): number {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((queue[middle]?.expiresMs ?? 0) > expiresMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
