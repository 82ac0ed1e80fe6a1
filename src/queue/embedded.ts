/**
 * The engine for one machine: everything in memory, nothing to install.
 *
 * A collect job is queued, delayed until its next turn, or running. Queued jobs go by what expires first, but no
 * mailbox may take every place while another has something to do: one that stalls never delays the rest.
 */
import type { CollectJob, PollSchedule } from "../model/job.ts";
import type { Handlers, JobQueue } from "./port.ts";

export interface EmbeddedOptions {
  /** How many collect jobs at once. */
  readonly places: number;
  /** Between 0 and 1, for jitter. */
  readonly random: () => number;
}

/** A poll comes up to this share of its interval early or late. */
const JITTER = 0.1;

export function createEmbeddedQueue(options: EmbeddedOptions): JobQueue {
  return new EmbeddedQueue(options);
}

class EmbeddedQueue implements JobQueue {
  readonly #options: EmbeddedOptions;
  readonly #stopping = new AbortController();
  readonly #queued = new Map<string, CollectJob>();
  readonly #delayed = new Map<string, { job: CollectJob; timer: NodeJS.Timeout }>();
  readonly #running = new Map<string, CollectJob>();
  readonly #polls = new Map<string, { everyMs: number; timer: NodeJS.Timeout | undefined }>();
  readonly #work = new Set<Promise<void>>();
  #waiting: (() => void)[] = [];
  #handlers: Handlers | undefined;
  #closed = false;

  constructor(options: EmbeddedOptions) {
    this.#options = options;
  }

  async start(handlers: Handlers): Promise<void> {
    this.#handlers = handlers;
    this.#fill();
  }

  async schedule(polls: readonly PollSchedule[]): Promise<void> {
    const wanted = new Map(polls.map((poll) => [poll.mailbox, poll.everyMs]));
    for (const [mailbox, { everyMs, timer }] of this.#polls) {
      if (wanted.get(mailbox) === everyMs) continue;
      clearTimeout(timer);
      this.#polls.delete(mailbox);
    }
    for (const { mailbox, everyMs } of polls) {
      if (!this.#polls.has(mailbox)) this.#poll(mailbox, everyMs);
    }
  }

  async add(job: CollectJob): Promise<void> {
    if (this.#closed || this.#delayed.has(job.key) || this.#running.has(job.key)) return;
    this.#queued.set(job.key, job);
    this.#fill();
  }

  async hurry(job: CollectJob): Promise<void> {
    clearTimeout(this.#delayed.get(job.key)?.timer);
    this.#delayed.delete(job.key);
    await this.add(job);
  }

  async idle(): Promise<void> {
    if (this.#work.size === 0 && this.#queued.size === 0) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    for (const { timer } of [...this.#polls.values(), ...this.#delayed.values()]) clearTimeout(timer);
    this.#polls.clear();
    this.#delayed.clear();
    this.#queued.clear();
    const grace = setTimeout(() => this.#stopping.abort(), graceMs);
    await Promise.all(this.#work);
    clearTimeout(grace);
  }

  #poll(mailbox: string, everyMs: number): void {
    this.#polls.set(mailbox, { everyMs, timer: undefined });
    this.#track(async () => {
      await this.#handlers?.poll(mailbox, this.#stopping.signal);
      const poll = this.#polls.get(mailbox);
      if (poll?.everyMs !== everyMs) return;
      const shift = (this.#options.random() * 2 - 1) * JITTER;
      poll.timer = setTimeout(() => this.#poll(mailbox, everyMs), everyMs * (1 + shift));
    });
  }

  /** Gives free places to the jobs whose turn it is. */
  #fill(): void {
    while (this.#handlers !== undefined && this.#running.size < this.#options.places) {
      const job = this.#next();
      if (job === undefined) return;
      this.#queued.delete(job.key);
      this.#running.set(job.key, job);
      this.#track(() => this.#collect(job));
    }
  }

  /** What expires first, of the mailboxes that hold fewest places; the last place is kept for one that has none. */
  #next(): CollectJob | undefined {
    const places = new Map<string, number>();
    for (const { mailbox } of this.#running.values()) places.set(mailbox, (places.get(mailbox) ?? 0) + 1);
    const held = (job: CollectJob) => places.get(job.mailbox) ?? 0;
    const lastPlace = this.#options.places > 1 && this.#running.size === this.#options.places - 1;
    let best: CollectJob | undefined;
    for (const job of this.#queued.values()) {
      if (lastPlace && held(job) > 0 && this.#polls.size > 1) continue;
      if (
        best === undefined ||
        held(job) < held(best) ||
        (held(job) === held(best) && job.expiresMs < best.expiresMs)
      ) {
        best = job;
      }
    }
    return best;
  }

  async #collect(job: CollectJob): Promise<void> {
    const next = await this.#handlers?.collect(job, this.#stopping.signal);
    this.#running.delete(job.key);
    if (next?.kind === "again" && !this.#closed) {
      const timer = setTimeout(() => {
        this.#delayed.delete(job.key);
        void this.add(job);
      }, next.afterMs);
      this.#delayed.set(job.key, { job, timer });
    }
    this.#fill();
  }

  #track(work: () => Promise<void>): void {
    const promise = work().finally(() => {
      this.#work.delete(promise);
      if (this.#work.size > 0 || this.#queued.size > 0) return;
      for (const resolve of this.#waiting) resolve();
      this.#waiting = [];
    });
    this.#work.add(promise);
  }
}
