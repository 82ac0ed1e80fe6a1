/** One process's share of the queue on Redis: its workers, its places, and how it stops. */
import { setTimeout as pause } from "node:timers/promises";
import { DelayedError, type Job, Queue, WaitingError, Worker } from "bullmq";
import * as v from "valibot";
import type { Outage } from "../base/outage.ts";
import { unlessStopped } from "../base/unless-stopped.ts";
import { type CollectJob, type Next, POLLS_AT_ONCE, type PollSchedule } from "../model/job.ts";
import type { RedisClient, RedisFacts, RedisSettings } from "./bullmq-connection.ts";
import { Places } from "./bullmq-places.ts";
import { Schedules } from "./bullmq-schedules.ts";
import type { Handlers, JobQueue } from "./port.ts";

export interface BullOptions {
  readonly redis: RedisSettings;
  /** How many collect jobs at once, in this process. */
  readonly places: number;
  /** What this process does of what the fleet does. */
  readonly role: "all" | "worker" | "scheduler";
  /** Whether a Redis that cannot be reached is waited for. */
  readonly patient: boolean;
  /** After so long without a sign of life another worker may take a job. */
  readonly lockMs: number;
  /** All mailboxes are of one service: where it asks for fewer requests, all of them wait. */
  readonly oneService: boolean;
  readonly outage: Outage;
  readonly signal: AbortSignal;
}

export interface BullQueue extends JobQueue {
  readonly facts: RedisFacts;
}

/** What BullMQ notes of events is for nobody here: as little as it allows. */
const EVENTS_KEPT = 100;
/** Priorities are numbers up to 2²¹: tens of minutes since this day last until 2065. */
const PRIORITY = { sinceMs: Date.UTC(2026, 0, 1), stepMs: 600_000, most: 2 ** 21 - 1 };
/** BullMQ waits for Redis, also when it closes: after a stop not for ever. */
const CLOSE_TIMEOUT_MS = 3_000;
/** A place that is kept for other mailboxes fetches jobs no faster than that. */
const PUT_OFF_PAUSE_MS = 200;
const IDLE_CHECK_MS = 50;
const GONE_WHEN_DONE = { removeOnComplete: true, removeOnFail: true } as const;

/** All that Redis holds of a transfer. What comes back from there is checked, and never used as a path. */
const JobShape = v.object({ mailbox: v.string(), trackingId: v.string() });
const PollShape = v.object({ mailbox: v.string() });
type JobData = Readonly<v.InferOutput<typeof JobShape>>;

export class BullEngine implements BullQueue {
  readonly facts: RedisFacts;
  readonly #options: BullOptions;
  readonly #client: RedisClient;
  readonly #stopping = new AbortController();
  readonly #collects: Queue<JobData>;
  readonly #polls: Queue<{ readonly mailbox: string }>;
  readonly #schedules: Schedules;
  readonly #places: Places;
  readonly #polling = new Set<string>();
  /** What handlers are at. What only waits for Redis is not among it: nothing is lost with it. */
  readonly #work = new Set<Promise<unknown>>();
  readonly #workers: Worker[] = [];
  #mailboxes: ReadonlySet<string> = new Set();
  /** Scheduled once, and not any more: what is on its way is not begun. */
  #dropped: ReadonlySet<string> = new Set();
  #closed = false;

  constructor(options: BullOptions, client: RedisClient, facts: RedisFacts) {
    this.#options = options;
    this.#client = client;
    this.facts = facts;
    this.#places = new Places(options.places);
    const queueOptions = { ...this.#shared(), streams: { events: { maxLen: EVENTS_KEPT } } };
    this.#collects = new Queue("collect", { ...queueOptions, defaultJobOptions: GONE_WHEN_DONE });
    this.#polls = new Queue("poll", { ...queueOptions, defaultJobOptions: GONE_WHEN_DONE });
    for (const queue of [this.#collects, this.#polls]) queue.on("error", () => {});
    this.#schedules = new Schedules(this.#polls, client);
  }

  async start(handlers: Handlers): Promise<void> {
    const { role, places } = this.#options;
    if (role !== "scheduler") {
      this.#addWorker("collect", places, (job: Job<JobData>, token) => this.#collect(handlers, job, token));
    }
    if (role !== "worker") {
      this.#addWorker("poll", POLLS_AT_ONCE, (job: Job<unknown>) => {
        const parsed = v.safeParse(PollShape, job.data);
        return parsed.success ? this.#poll(handlers, parsed.output.mailbox) : Promise.resolve();
      });
    }
  }

  async schedule(polls: readonly PollSchedule[]): Promise<void> {
    const wanted = new Set(polls.map(({ mailbox }) => mailbox));
    this.#dropped = new Set([...this.#mailboxes, ...this.#dropped].filter((name) => !wanted.has(name)));
    this.#mailboxes = wanted;
    if (this.#options.role !== "worker") await this.#reach(this.#schedules.set(polls));
  }

  async add({ key, mailbox, trackingId, expiresMs }: CollectJob): Promise<void> {
    if (this.#closed) return;
    const options = { jobId: key, priority: priorityOf(expiresMs) };
    await this.#reach(this.#collects.add("collect", { mailbox, trackingId }, options));
  }

  async hurry(job: CollectJob): Promise<void> {
    if (!this.#closed) await this.#reach(this.#hurry(job));
  }

  async idle(): Promise<void> {
    for (;;) {
      const counts = await Promise.all(
        [this.#collects, this.#polls].map((queue) =>
          queue.getJobCountByTypes("wait", "prioritized", "active"),
        ),
      );
      const isEmpty = counts.every((count) => count === 0);
      if (this.#work.size === 0 && (isEmpty || (await this.#collects.getRateLimitTtl()) > 0)) return;
      await pause(IDLE_CHECK_MS);
    }
  }

  /** Whoever asks does not wait for a Redis that is away. */
  async depth(): Promise<number | undefined> {
    if (this.#client.status !== "ready") return undefined;
    return this.#reach(this.#collects.getJobCountByTypes("wait", "prioritized"));
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    const unclaimed = this.#schedules.close();
    let isClosed = false;
    void Promise.allSettled(this.#workers.map((worker) => worker.close())).then(() => {
      isClosed = true;
    });
    const grace = setTimeout(() => this.#stopping.abort(), graceMs);
    // What is over is reported to Redis, if it can be; where it cannot, the ledger say it.
    for (let waitedMs = 0; !isClosed && waitedMs < CLOSE_TIMEOUT_MS; await pause(IDLE_CHECK_MS)) {
      if (this.#work.size > 0) continue;
      if (this.#client.status !== "ready") break;
      if (this.#stopping.signal.aborted) waitedMs += IDLE_CHECK_MS;
    }
    clearTimeout(grace);
    this.#stopping.abort();
    const rest = [
      unclaimed,
      ...this.#workers.map((worker) => worker.close(true)),
      ...[this.#collects, this.#polls].map((queue) => queue.close()),
    ];
    const over = new AbortController();
    const patience = pause(CLOSE_TIMEOUT_MS, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([Promise.allSettled(rest), patience]);
    over.abort();
    this.#client.disconnect();
  }

  async #hurry(job: CollectJob): Promise<void> {
    const known = await this.#collects.getJob(job.key);
    if (known === undefined || !(await known.isDelayed())) return this.add(job);
    // Its time may have come at this very moment.
    await known.promote().catch(() => {});
  }

  #shared() {
    const { redis } = this.#options;
    return { connection: this.#client, prefix: redis.prefix, skipVersionCheck: true };
  }

  #addWorker<Data>(
    name: string,
    concurrency: number,
    process: (job: Job<Data>, token: string) => Promise<void>,
  ): void {
    const { lockMs } = this.#options;
    const worker = new Worker<Data>(name, (job, token = "") => process(job, token), {
      ...this.#shared(),
      concurrency,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      // However often a worker dies with it: the record says whether a transfer is to be given up.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    });
    // Connections are reported for all; a job that was lost meanwhile is somebody else's.
    worker.on("error", () => {});
    worker.on("lockRenewalFailed", (ids) => this.#places.lose(ids));
    this.#workers.push(worker);
  }

  async #collect(handlers: Handlers, job: Job<JobData>, token: string): Promise<void> {
    const { id = "" } = job;
    const parsed = v.safeParse(JobShape, job.data);
    // Somebody else wrote it: there is nothing that it could mean.
    if (!parsed.success) return;
    const data = parsed.output;
    this.#places.lose([id]);
    if (!this.#places.hasRoomFor(data.mailbox, this.#mailboxes.size)) {
      // Without this pause the place would spin: put one off, fetch the next.
      await pause(PUT_OFF_PAUSE_MS, undefined, { signal: this.#stopping.signal }).catch(() => {});
      return this.#delay(job, this.#places.putOff(), token);
    }
    const run = this.#places.take(id, data.mailbox);
    let next: Next;
    try {
      const signal = AbortSignal.any([run.lost.signal, this.#stopping.signal]);
      next = await this.#track(handlers.collect(data, signal));
    } finally {
      this.#places.giveBack(run);
    }
    if (run.lost.signal.aborted) return;
    if (this.#stopping.signal.aborted) {
      // Not done, and not ours any more: whoever has a place goes on with it.
      await job.moveToWait(token);
      throw new WaitingError();
    }
    if (next.kind === "done") return;
    if (next.isLimit && this.#options.oneService) {
      await this.#collects.rateLimit(next.afterMs);
      throw Worker.RateLimitError();
    }
    await this.#delay(job, next.afterMs, token);
  }

  async #delay(job: Job, afterMs: number, token: string): Promise<never> {
    await job.moveToDelayed(Date.now() + afterMs, token);
    throw new DelayedError();
  }

  /** A poll that takes longer than its interval is not begun a second time here. */
  async #poll(handlers: Handlers, mailbox: string): Promise<void> {
    if (this.#polling.has(mailbox) || this.#dropped.has(mailbox)) return;
    this.#polling.add(mailbox);
    try {
      await this.#track(handlers.poll(mailbox, this.#stopping.signal));
    } finally {
      this.#polling.delete(mailbox);
    }
  }

  /** Throws `STOPPED` where Redis does not answer after a stop: whoever asked is not kept from ending. */
  #reach<Result>(answer: Promise<Result>): Promise<Result> {
    return unlessStopped(answer, CLOSE_TIMEOUT_MS, this.#options.signal);
  }

  async #track<Result>(work: Promise<Result>): Promise<Result> {
    this.#work.add(work);
    try {
      return await work;
    } finally {
      this.#work.delete(work);
    }
  }
}

function priorityOf(expiresMs: number): number {
  const { sinceMs, stepMs, most } = PRIORITY;
  return Math.min(Math.max(Math.ceil((expiresMs - sinceMs) / stepMs), 1), most);
}
