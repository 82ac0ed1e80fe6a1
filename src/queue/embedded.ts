/**
 * The engine for one machine: everything in memory, nothing to install.
 *
 * A download job is queued, delayed until its next turn, or running. Queued jobs go by what expires first, but slots are
 * fair between services and then between mailboxes: one that stalls never delays the rest.
 */
import { WaitGroup } from "../base/concurrency.ts";
import type { PollSchedule, Services, TransferJob } from "../model/job.ts";
import { PollLine } from "./poll-line.ts";
import type { Handlers, JobQueue } from "./port.ts";
import { type Holder, Slots } from "./slots.ts";

export interface EmbeddedOptions {
  /** How many download jobs at once, and one more for each further service. */
  readonly places: number;
  readonly services: Services;
  /** Between 0 and 1, for jitter. */
  readonly random: () => number;
}

/** A poll comes up to this share of its interval early or late. */
const JITTER = 0.1;

export function createEmbeddedQueue(options: EmbeddedOptions): JobQueue {
  return new EmbeddedQueue(options);
}

interface ScheduledPoll {
  readonly everyMs: number;
  /** Polled again later than its interval says, because the last poll failed. */
  isPutOff: boolean;
  timer: NodeJS.Timeout | undefined;
}

class EmbeddedQueue implements JobQueue {
  readonly #options: EmbeddedOptions;
  readonly #stopping = new AbortController();
  /** By mailbox, each in the order of expiry, the last first: what expires first is taken from the end. */
  readonly #queues = new Map<string, TransferJob[]>();
  /** The keys of all that is queued. */
  readonly #queued = new Set<string>();
  readonly #delayed = new Map<string, { job: TransferJob; timer: NodeJS.Timeout }>();
  readonly #running = new Set<string>();
  readonly #slots: Slots;
  readonly #line: PollLine;
  /** Jobs that run, and were hurried meanwhile: they run once more. */
  readonly #again = new Set<string>();
  /** Services that asked for fewer requests, and until when. */
  readonly #limited = new Map<string, { untilMs: number; timer: NodeJS.Timeout }>();
  readonly #polls = new Map<string, ScheduledPoll>();
  /** How long the last poll of a mailbox asked to wait. */
  readonly #waitMs = new Map<string, number>();
  readonly #work = new WaitGroup();
  #waiting: (() => void)[] = [];
  #handlers: Handlers | undefined;
  #closed = false;

  constructor(options: EmbeddedOptions) {
    this.#options = options;
    this.#slots = new Slots(options.places, options.services);
    this.#line = new PollLine(options.services, (mailbox) => this.#pollOnce(mailbox));
  }

  async start(handlers: Handlers): Promise<void> {
    this.#handlers = handlers;
    this.#fill();
  }

  async schedule(polls: readonly PollSchedule[]): Promise<void> {
    const wanted = new Map(polls.map((poll) => [poll.mailbox, poll.everyMs]));
    for (const [mailbox, { everyMs, isPutOff, timer }] of this.#polls) {
      if (wanted.get(mailbox) === everyMs && !isPutOff) continue;
      clearTimeout(timer);
      this.#polls.delete(mailbox);
      this.#waitMs.delete(mailbox);
      this.#line.drop(mailbox);
    }
    for (const { mailbox, everyMs } of polls) {
      if (!this.#polls.has(mailbox)) this.#track(() => this.#poll(mailbox, everyMs, true));
    }
  }

  async pollNow(mailboxes: readonly string[]): Promise<void> {
    const poll = (mailbox: string) => {
      const { everyMs, timer } = this.#polls.get(mailbox) ?? {};
      clearTimeout(timer);
      return everyMs === undefined ? this.#line.add(mailbox) : this.#poll(mailbox, everyMs, false);
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
    queue.splice(placeFor(queue, job), 0, job);
    this.#fill();
  }

  async hurry(job: TransferJob): Promise<void> {
    if (this.#running.has(job.key)) this.#again.add(job.key);
    clearTimeout(this.#delayed.get(job.key)?.timer);
    this.#delayed.delete(job.key);
    await this.add(job);
  }

  async depth(): Promise<number | undefined> {
    const waiting = [...this.#queues].filter(([mailbox]) => !this.#isLimited(mailbox));
    return waiting.reduce((sum, [, queue]) => sum + queue.length, 0);
  }

  async idle(): Promise<void> {
    if (this.#isIdle()) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
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
    this.#line.close();
    const grace = setTimeout(() => this.#stopping.abort(), graceMs);
    await this.#work.wait();
    clearTimeout(grace);
  }

  /** After the first poll each mailbox gets a random offset in the interval, so that they do not come back together. */
  async #poll(mailbox: string, everyMs: number, isFirst: boolean): Promise<void> {
    const poll: ScheduledPoll = { everyMs, isPutOff: false, timer: undefined };
    this.#polls.set(mailbox, poll);
    await this.#line.add(mailbox);
    if (this.#polls.get(mailbox) !== poll) return;
    const { random } = this.#options;
    const share = isFirst ? JITTER + (1 - JITTER) * random() : 1 + (random() * 2 - 1) * JITTER;
    const waitMs = this.#waitMs.get(mailbox) ?? 0;
    poll.isPutOff = waitMs > everyMs;
    poll.timer = setTimeout(
      () => this.#track(() => this.#poll(mailbox, everyMs, false)),
      Math.max(everyMs * share, waitMs * (1 + JITTER * random())),
    );
  }

  async #pollOnce(mailbox: string): Promise<void> {
    const waitMs = (await this.#handlers?.poll(mailbox, this.#stopping.signal)) ?? 0;
    if (waitMs > 0) this.#waitMs.set(mailbox, waitMs);
    else this.#waitMs.delete(mailbox);
  }

  /** Gives free slots to the jobs that come next. */
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

  /** By fewest slots held, first of services and then of mailboxes; among equals the job that expires first. */
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
    const next = await this.#handlers?.download(job, this.#stopping.signal);
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

  /** A later answer never shortens a limit. */
  #limit(service: string, limitMs: number): void {
    const before = this.#limited.get(service);
    const untilMs = performance.now() + limitMs;
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
      for (const resolve of this.#waiting) resolve();
      this.#waiting = [];
    });
  }
}

type Rank = readonly [heldByService: number, heldByMailbox: number, expiresMs: number];

function isBefore(a: Rank, b: Rank): boolean {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at >= 0 && (a[at] ?? 0) < (b[at] ?? 0);
}

/** Where in a queue a job belongs; of those that expire together the older one comes first. */
function placeFor(queue: readonly TransferJob[], { expiresMs }: TransferJob): number {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((queue[middle]?.expiresMs ?? 0) > expiresMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
