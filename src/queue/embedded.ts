/**
 * The engine for one machine: everything in memory, nothing to install.
 *
 * A collect job is queued, delayed until its next turn, or running. Queued jobs go by what expires first, but no
 * mailbox may take every place while another has something to do: one that stalls never delays the rest.
 */
import { type CollectJob, POLLS_AT_ONCE, type PollSchedule } from "../model/job.ts";
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

interface WaitingPoll {
  readonly mailbox: string;
  readonly everyMs: number;
  readonly isFirst: boolean;
}

class EmbeddedQueue implements JobQueue {
  readonly #options: EmbeddedOptions;
  readonly #stopping = new AbortController();
  /** By mailbox, each in the order of expiry, the last first: what expires first is taken from the end. */
  readonly #queues = new Map<string, CollectJob[]>();
  /** Those whose time has come, and how many of them are under way. */
  readonly #pollLine: WaitingPoll[] = [];
  #polling = 0;
  /** The keys of all that is queued. */
  readonly #queued = new Set<string>();
  readonly #delayed = new Map<string, { job: CollectJob; timer: NodeJS.Timeout }>();
  readonly #running = new Map<string, CollectJob>();
  /** Jobs that run, and were hurried meanwhile: they run once more. */
  readonly #again = new Set<string>();
  /** Mailboxes whose service asked for fewer requests. */
  readonly #limited = new Map<string, NodeJS.Timeout>();
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
      if (!this.#polls.has(mailbox)) this.#poll(mailbox, everyMs, true);
    }
  }

  async add(job: CollectJob): Promise<void> {
    const { key } = job;
    const known = this.#queued.has(key) || this.#delayed.has(key) || this.#running.has(key);
    if (this.#closed || known) return;
    this.#queued.add(key);
    const queue = this.#queues.get(job.mailbox) ?? [];
    this.#queues.set(job.mailbox, queue);
    queue.splice(placeFor(queue, job), 0, job);
    this.#fill();
  }

  async hurry(job: CollectJob): Promise<void> {
    if (this.#running.has(job.key)) this.#again.add(job.key);
    clearTimeout(this.#delayed.get(job.key)?.timer);
    this.#delayed.delete(job.key);
    await this.add(job);
  }

  async depth(): Promise<number | undefined> {
    return this.#queued.size;
  }

  async idle(): Promise<void> {
    if (this.#isIdle()) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    for (const { timer } of [...this.#polls.values(), ...this.#delayed.values()]) clearTimeout(timer);
    for (const timer of this.#limited.values()) clearTimeout(timer);
    this.#polls.clear();
    this.#delayed.clear();
    this.#queued.clear();
    this.#queues.clear();
    const grace = setTimeout(() => this.#stopping.abort(), graceMs);
    await Promise.all(this.#work);
    clearTimeout(grace);
  }

  #poll(mailbox: string, everyMs: number, isFirst: boolean): void {
    this.#polls.set(mailbox, { everyMs, timer: undefined });
    this.#pollLine.push({ mailbox, everyMs, isFirst });
    this.#fillPolls();
  }

  #fillPolls(): void {
    while (this.#polling < POLLS_AT_ONCE) {
      const next = this.#pollLine.shift();
      if (next === undefined) return;
      // What is not scheduled any more, or otherwise, has no turn.
      if (this.#polls.get(next.mailbox)?.everyMs === next.everyMs) this.#track(() => this.#runPoll(next));
    }
  }

  /** After the first time each takes a moment of its own in the interval, so that they do not come back as a crowd. */
  async #runPoll({ mailbox, everyMs, isFirst }: WaitingPoll): Promise<void> {
    this.#polling++;
    try {
      await this.#handlers?.poll(mailbox, this.#stopping.signal);
    } finally {
      this.#polling--;
      this.#fillPolls();
    }
    const poll = this.#polls.get(mailbox);
    if (poll?.everyMs !== everyMs) return;
    const { random } = this.#options;
    const share = isFirst ? JITTER + (1 - JITTER) * random() : 1 + (random() * 2 - 1) * JITTER;
    poll.timer = setTimeout(() => this.#poll(mailbox, everyMs, false), everyMs * share);
  }

  /** Gives free places to the jobs whose turn it is. */
  #fill(): void {
    while (this.#handlers !== undefined && this.#running.size < this.#options.places) {
      const job = this.#next();
      if (job === undefined) return;
      this.#running.set(job.key, job);
      this.#track(() => this.#collect(job));
    }
  }

  /** What expires first, of the mailboxes that hold fewest places; the last place is kept for one that has none. */
  #next(): CollectJob | undefined {
    const places = new Map<string, number>();
    for (const { mailbox } of this.#running.values()) places.set(mailbox, (places.get(mailbox) ?? 0) + 1);
    const lastPlace = this.#options.places > 1 && this.#running.size === this.#options.places - 1;
    let best: { readonly queue: CollectJob[]; readonly held: number; readonly expiresMs: number } | undefined;
    for (const [mailbox, queue] of this.#queues) {
      const job = queue.at(-1);
      const held = places.get(mailbox) ?? 0;
      if (job === undefined || this.#limited.has(mailbox) || (lastPlace && held > 0 && this.#polls.size > 1))
        continue;
      const { expiresMs } = job;
      const better =
        best === undefined || held < best.held || (held === best.held && expiresMs < best.expiresMs);
      if (better) best = { queue, held, expiresMs };
    }
    const job = best?.queue.pop();
    if (job === undefined) return undefined;
    this.#queued.delete(job.key);
    if (best?.queue.length === 0) this.#queues.delete(job.mailbox);
    return job;
  }

  async #collect(job: CollectJob): Promise<void> {
    const next = await this.#handlers?.collect(job, this.#stopping.signal);
    this.#running.delete(job.key);
    if (this.#again.delete(job.key) && !this.#closed) await this.add(job);
    else if (next?.kind === "again" && !this.#closed) {
      if (next.isLimit) this.#limit(job.mailbox, next.afterMs);
      const timer = setTimeout(() => {
        this.#delayed.delete(job.key);
        void this.add(job);
      }, next.afterMs);
      this.#delayed.set(job.key, { job, timer });
    }
    this.#fill();
  }

  #isIdle(): boolean {
    return this.#work.size === 0 && [...this.#queues.keys()].every((mailbox) => this.#limited.has(mailbox));
  }

  #limit(mailbox: string, afterMs: number): void {
    clearTimeout(this.#limited.get(mailbox));
    const end = () => {
      this.#limited.delete(mailbox);
      this.#fill();
    };
    this.#limited.set(mailbox, setTimeout(end, afterMs));
  }

  #track(work: () => Promise<void>): void {
    const promise = work().finally(() => {
      this.#work.delete(promise);
      if (!this.#isIdle()) return;
      for (const resolve of this.#waiting) resolve();
      this.#waiting = [];
    });
    this.#work.add(promise);
  }
}

/** Where in a queue a job belongs; of those that expire together the older one comes first. */
function placeFor(queue: readonly CollectJob[], { expiresMs }: CollectJob): number {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((queue[middle]?.expiresMs ?? 0) > expiresMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
