/**
 * The engine for one machine: everything in memory, nothing to install.
 *
 * A download job is queued, delayed until its next attempt, or running. Slots are shared fairly between services, then
 * between mailboxes, so that a service that stalls never delays the rest. Among equals, the job that expires first runs.
 */

import { WaitGroup } from "../base/concurrency.ts";
import { clearTimeout, monotonicMs, setTimeout, type Timer } from "../base/timers.ts";
import { NO_WAIT, type PollSchedule, type Rest, type TransferJob } from "../model/job.ts";
import { Polls } from "./polls.ts";
import type { EngineOptions, Handlers, JobQueue } from "./port.ts";
import { type Holder, JobSlots } from "./slots.ts";
import { jobLimitMs, OwnValues, restAskedFor, Turns } from "./turns.ts";

export interface EmbeddedOptions extends Pick<EngineOptions, "slots" | "services" | "onRest" | "restsFile"> {
  /** Between 0 and 1, for jitter. */
  readonly random: () => number;
}

export function createEmbeddedQueue(options: EmbeddedOptions): JobQueue {
  return new EmbeddedQueue(options);
}

class EmbeddedQueue implements JobQueue {
  readonly #stopping = new AbortController();
  /** By mailbox, each sorted by expiry, latest first: the next job is taken from the end. */
  readonly #queues = new Map<string, TransferJob[]>();
  /** Keys of all queued jobs. */
  readonly #queued = new Set<string>();
  /** The timer of each delayed job, by key. */
  readonly #delayed = new Map<string, Timer>();
  readonly #running = new Set<string>();
  readonly #slots: JobSlots;
  readonly #polls: Polls;
  /** Running jobs that have to run once more. */
  readonly #again = new Set<string>();
  /** Services that asked for fewer requests, and until when. */
  readonly #limited = new Map<string, { untilMs: number; timer: Timer }>();
  readonly #work = new WaitGroup();
  /** Resolve the pending calls of `idle`. */
  #idleCalls: (() => void)[] = [];
  #handlers: Handlers | undefined;
  #closed = false;

  constructor({ slots, services, onRest, restsFile, random }: EmbeddedOptions) {
    this.#slots = new JobSlots(slots, services);
    const poll = async (mailbox: string, isProbe: boolean) =>
      this.#handlers?.poll(mailbox, this.#stopping.signal, isProbe) ?? NO_WAIT;
    const noteRest = (service: string, rest: Rest | undefined) => {
      this.#limit(service, jobLimitMs(rest));
      onRest?.(service, rest);
    };
    const turns = new Turns(new OwnValues(restsFile), services, false);
    this.#polls = new Polls(
      (...call) => this.#track(poll(...call)),
      services,
      turns,
      { rest: noteRest },
      random,
    );
  }

  async start(handlers: Handlers): Promise<void> {
    this.#handlers = handlers;
    this.#fill();
  }

  async schedule(polls: readonly PollSchedule[]): Promise<void> {
    await this.#polls.schedule(polls);
    // There may be more slots now.
    this.#fill();
  }

  pollNow(mailboxes: readonly string[]): Promise<void> {
    return this.#track(this.#polls.pollNow(mailboxes));
  }

  pollOnce(mailboxes: readonly string[]): Promise<readonly string[]> {
    return this.#track(this.#polls.pollOnce(mailboxes));
  }

  async add(job: TransferJob): Promise<void> {
    const { key } = job;
    const isKnown = this.#queued.has(key) || this.#delayed.has(key) || this.#running.has(key);
    if (this.#closed || isKnown) return;
    this.#queued.add(key);
    const queue = this.#queues.get(job.mailbox) ?? [];
    this.#queues.set(job.mailbox, queue);
    queue.splice(indexFor(queue, job), 0, job);
    this.#fill();
  }

  async runNow(job: TransferJob): Promise<void> {
    if (this.#running.has(job.key)) this.#again.add(job.key);
    clearTimeout(this.#delayed.get(job.key));
    this.#delayed.delete(job.key);
    await this.add(job);
  }

  async depth(): Promise<number | undefined> {
    const waiting = [...this.#queues].filter(([mailbox]) => !this.#isLimited(mailbox));
    return waiting.reduce((sum, [, queue]) => sum + queue.length, 0);
  }

  async stalled(): Promise<readonly string[]> {
    const holders = [...this.#queues.keys()].map((mailbox) => this.#holderOf(mailbox));
    return holders.filter((holder) => this.#mayStart(holder)).map(({ service }) => service);
  }

  async idle(): Promise<void> {
    if (this.#isIdle()) return;
    await new Promise<void>((resolve) => this.#idleCalls.push(resolve));
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    this.#polls.close();
    for (const timer of this.#delayed.values()) clearTimeout(timer);
    for (const { timer } of this.#limited.values()) clearTimeout(timer);
    this.#delayed.clear();
    this.#queued.clear();
    this.#queues.clear();
    const grace = setTimeout(() => this.#stopping.abort(), graceMs);
    await this.#work.wait();
    clearTimeout(grace);
  }

  /** Starts the next jobs while slots are free. */
  #fill(): void {
    while (this.#handlers !== undefined) {
      const next = this.#takeNext();
      if (next === undefined) return;
      const { job, holder } = next;
      this.#running.add(job.key);
      this.#slots.take(holder);
      void this.#track(this.#download(job, holder));
    }
  }

  /** Removes the next job: fewest running jobs of the service first, then of the mailbox, then the first to expire. */
  #takeNext(): { readonly job: TransferJob; readonly holder: Holder } | undefined {
    let best: { readonly queue: TransferJob[]; readonly holder: Holder; readonly rank: Rank } | undefined;
    for (const [mailbox, queue] of this.#queues) {
      const holder = this.#holderOf(mailbox);
      const job = queue.at(-1);
      if (job === undefined || !this.#mayStart(holder)) continue;
      const rank: Rank = [...this.#slots.runningBeside(holder), job.expiresMs];
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
    const mustRerun = this.#again.delete(job.key);
    if (this.#closed) return;
    const again = next?.kind === "again" ? next : undefined;
    const limitMs = again?.limitMs ?? 0;
    if (limitMs > 0) {
      this.#limit(holder.service, jobLimitMs(restAskedFor(limitMs)));
      void this.#polls.rest(holder.service, limitMs);
    }
    if (mustRerun) await this.add(job);
    else if (again !== undefined) this.#delay(job, again.afterMs);
    this.#fill();
  }

  #delay(job: TransferJob, ms: number): void {
    const timer = setTimeout(() => {
      this.#delayed.delete(job.key);
      void this.add(job);
    }, ms);
    this.#delayed.set(job.key, timer);
  }

  #holderOf(mailbox: string): Holder {
    return { mailbox, service: this.#slots.serviceOf(mailbox) };
  }

  /** Whether a job of this mailbox can start now. */
  #mayStart(holder: Holder): boolean {
    return !this.#limited.has(holder.service) && this.#slots.isFreeFor(holder);
  }

  #isIdle(): boolean {
    return this.#work.size === 0 && [...this.#queues.keys()].every((mailbox) => this.#isLimited(mailbox));
  }

  #isLimited(mailbox: string): boolean {
    return this.#limited.has(this.#slots.serviceOf(mailbox));
  }

  /** 0 ends a limit; any other time never shortens one. */
  #limit(service: string, limitMs: number): void {
    const before = this.#limited.get(service);
    const untilMs = monotonicMs() + limitMs;
    if (limitMs > 0 && before !== undefined && before.untilMs >= untilMs) return;
    clearTimeout(before?.timer);
    const end = () => {
      this.#limited.delete(service);
      this.#fill();
    };
    this.#limited.set(service, { untilMs, timer: setTimeout(end, limitMs) });
  }

  #track<Result>(work: Promise<Result>): Promise<Result> {
    return this.#work.add(work).finally(() => {
      if (!this.#isIdle()) return;
      for (const resolve of this.#idleCalls) resolve();
      this.#idleCalls = [];
    });
  }
}

type Rank = readonly [ofService: number, ofMailbox: number, expiresMs: number];

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
