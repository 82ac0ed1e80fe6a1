/**
 * One process's share of the queue on Redis: its workers, its slots, and how it stops. The jobs of each service are in a
 * queue of their own, so that no job waits behind those of another service.
 */
import { setTimeout as pause } from "node:timers/promises";
import { DelayedError, type Job, type Queue, WaitingError, Worker, type WorkerOptions } from "bullmq";
import * as v from "valibot";
import { WaitGroup } from "../base/concurrency.ts";
import { unlessStopped } from "../base/deadline.ts";
import type { Outage } from "../base/outage.ts";
import {
  DONE,
  type Next,
  POLLS_AT_ONCE,
  type PollSchedule,
  type Services,
  type TransferJob,
} from "../model/job.ts";
import type { RedisClient, RedisFacts, RedisSettings } from "./bullmq-connection.ts";
import { Runs } from "./bullmq-runs.ts";
import { Schedules } from "./bullmq-schedules.ts";
import { openQueue, ServiceQueues } from "./bullmq-services.ts";
import { PollLine } from "./poll-line.ts";
import type { Handlers, JobQueue } from "./port.ts";

export interface BullOptions {
  readonly redis: RedisSettings;
  /** How many download jobs at once in this process, and one more for each further service. */
  readonly places: number;
  readonly services: Services;
  /** What this process does of what the fleet does. */
  readonly role: "all" | "worker" | "scheduler";
  /** Whether a Redis that cannot be reached is waited for. */
  readonly patient: boolean;
  /** After so long without a sign of life another worker may take a job. */
  readonly lockMs: number;
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
/** A worker without a free slot fetches jobs no faster than that. */
const PUT_OFF_PAUSE_MS = 200;
const IDLE_CHECK_MS = 50;
/** How long Redis notes that a job was hurried while it runs. After longer runs the next poll adds it. */
const RERUN_NOTE_MS = 24 * 3_600_000;
/** BullMQ heeds a limit only where its workers have a limiter. This one never limits by itself. */
const LIMITER = { max: 1_000_000_000, duration: 1_000 };
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
  readonly #downloads: ServiceQueues<JobData>;
  readonly #polls: Queue<{ readonly mailbox: string }>;
  readonly #schedules: Schedules;
  readonly #line: PollLine;
  readonly #runs: Runs;
  /** What handlers are at. What only waits for Redis is not among it: nothing is lost with it. */
  readonly #work = new WaitGroup();
  readonly #workers: Worker[] = [];
  /** Jobs that this process added and that may still be untried: `idle` waits for them. */
  readonly #untried = new Map<string, Queue<JobData>>();
  /** A process with schedules runs until it is stopped. It asks for no `idle`, and keeps no list for it. */
  #hasSchedules = false;
  #handlers: Handlers | undefined;
  #mailboxes: ReadonlySet<string> = new Set();
  /** Scheduled once, and not any more: what is on its way is not begun. */
  #dropped: ReadonlySet<string> = new Set();
  #closed = false;

  constructor(options: BullOptions, client: RedisClient, facts: RedisFacts) {
    this.#options = options;
    this.#client = client;
    this.facts = facts;
    this.#runs = new Runs(options.places, options.services);
    const streams = { events: { maxLen: EVENTS_KEPT } };
    const queueOptions = { ...this.#shared(), streams, defaultJobOptions: GONE_WHEN_DONE };
    this.#downloads = new ServiceQueues(queueOptions, options.services);
    this.#polls = openQueue("poll", queueOptions);
    this.#schedules = new Schedules(this.#polls, client);
    this.#line = new PollLine(options.services, (mailbox) => this.#poll(mailbox));
  }

  async start(handlers: Handlers): Promise<void> {
    this.#handlers = handlers;
    this.#openServices();
    if (this.#options.role === "worker") return;
    this.#addWorker("poll", { concurrency: POLLS_AT_ONCE }, async (job: Job<unknown>) => {
      const parsed = v.safeParse(PollShape, job.data);
      if (parsed.success) await this.#pollIsDue(parsed.output.mailbox);
    });
  }

  async schedule(polls: readonly PollSchedule[]): Promise<void> {
    this.#hasSchedules = true;
    this.#untried.clear();
    const wanted = new Set(polls.map(({ mailbox }) => mailbox));
    this.#dropped = new Set([...this.#mailboxes, ...this.#dropped].filter((name) => !wanted.has(name)));
    this.#mailboxes = wanted;
    for (const mailbox of this.#dropped) this.#line.drop(mailbox);
    this.#openServices();
    if (this.#options.role !== "worker") await this.#reach(this.#schedules.set(polls));
  }

  pollNow(mailboxes: readonly string[]): Promise<void> {
    return this.#work.add(Promise.all(mailboxes.map((mailbox) => this.#line.add(mailbox))).then(() => {}));
  }

  async add({ key, mailbox, trackingId, expiresMs }: TransferJob): Promise<void> {
    const queue = this.#downloads.of(mailbox);
    if (this.#closed || queue === undefined) return;
    if (!this.#hasSchedules) this.#untried.set(key, queue);
    const options = { jobId: key, priority: priorityOf(expiresMs) };
    await this.#reach(queue.add("download", { mailbox, trackingId }, options));
  }

  async hurry({ key, mailbox, trackingId, expiresMs }: TransferJob): Promise<void> {
    const queue = this.#downloads.of(mailbox);
    if (this.#closed || queue === undefined) return;
    if (!this.#hasSchedules) this.#untried.set(key, queue);
    await this.#reach(this.#hurry(queue, key, { mailbox, trackingId }, priorityOf(expiresMs)));
  }

  async idle(): Promise<void> {
    do {
      for (const [key, queue] of this.#untried) {
        while (await this.#isUntried(queue, key)) await pause(IDLE_CHECK_MS);
        this.#untried.delete(key);
      }
      // Of the jobs of other processes, only those that run here now: they may add more for ever.
      await this.#work.wait();
    } while (this.#untried.size > 0);
  }

  /** Whoever asks does not wait for a Redis that is away. */
  async depth(): Promise<number | undefined> {
    if (this.#client.status !== "ready") return undefined;
    const counts = await this.#reach(Promise.all(this.#downloads.all().map(countWaiting)));
    return counts.reduce((sum, count) => sum + count, this.#runs.countPutOff());
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    const unclaimed = this.#schedules.close();
    this.#line.close();
    let isClosed = false;
    void Promise.allSettled(this.#workers.map((worker) => worker.close())).then(() => {
      isClosed = true;
    });
    const grace = setTimeout(() => this.#stopping.abort(), graceMs);
    // Redis learns which jobs are over, if it answers. The ledger holds their outcome in any case.
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
      ...[this.#polls, ...this.#downloads.all()].map((queue) => queue.close()),
    ];
    const over = new AbortController();
    const patience = pause(CLOSE_TIMEOUT_MS, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([Promise.allSettled(rest), patience]);
    over.abort();
    this.#client.disconnect();
  }

  /** A run reads the note after it has moved its job: the note is written before the second look at the job. */
  async #hurry(queue: Queue<JobData>, key: string, data: JobData, priority: number): Promise<void> {
    let state = await queue.getJobState(key);
    if (state === "active") {
      await this.#client.set(rerunNoteOf(queue, key), 1, "PX", RERUN_NOTE_MS);
      state = await queue.getJobState(key);
    }
    if (state === "active") return;
    if (state !== "delayed") await queue.add("download", data, { jobId: key, priority });
    // Its time may have come at this very moment.
    else await (await queue.getJob(key))?.promote().catch(() => {});
  }

  /** Redis knows that the run is over. A job that was hurried meanwhile runs once more. */
  async #ended(queue: Queue<JobData>, { id = "", data, priority }: Job<JobData>): Promise<void> {
    const isHurried = (await this.#client.del(rerunNoteOf(queue, id))) === 1;
    if (isHurried) await this.#hurry(queue, id, data, priority);
    else this.#untried.delete(id);
  }

  async #isUntried(queue: Queue, key: string): Promise<boolean> {
    const state = await queue.getJobState(key);
    if (state === "delayed") return this.#runs.isPutOff(key);
    if (state === "waiting" || state === "prioritized") return !(await isLimited(queue));
    return state === "active";
  }

  /** Opens the queue of each service that has none yet. Those of services without a mailbox stay, and run empty. */
  #openServices(): void {
    const { role, places } = this.#options;
    for (const queue of this.#downloads.open()) {
      if (role === "scheduler" || this.#handlers === undefined) continue;
      const download = (job: Job<JobData>, token: string) => this.#download(queue, job, token);
      const worker = this.#addWorker(queue.name, { concurrency: places, limiter: LIMITER }, download);
      // Where Redis is away, the next poll adds it.
      worker.on("completed", (job) => void this.#ended(queue, job).catch(() => {}));
    }
  }

  #shared() {
    const { redis } = this.#options;
    return { connection: this.#client, prefix: redis.prefix, skipVersionCheck: true };
  }

  #addWorker<Data>(
    name: string,
    options: Pick<WorkerOptions, "concurrency" | "limiter">,
    process: (job: Job<Data>, token: string) => Promise<void>,
  ): Worker<Data> {
    const { lockMs } = this.#options;
    const worker = new Worker<Data>(name, (job, token = "") => process(job, token), {
      ...this.#shared(),
      ...options,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      // However often a worker dies with it: the record says whether a transfer is to be given up.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    });
    // Connections are reported for all; a job that was lost meanwhile is somebody else's.
    worker.on("error", () => {});
    worker.on("lockRenewalFailed", (ids) => this.#runs.lose(ids));
    this.#workers.push(worker);
    return worker;
  }

  async #download(queue: Queue<JobData>, job: Job<JobData>, token: string): Promise<void> {
    const { id = "" } = job;
    const parsed = v.safeParse(JobShape, job.data);
    // Somebody else wrote it: there is nothing that it could mean.
    if (!parsed.success) return;
    const data = parsed.output;
    if (this.#stopping.signal.aborted) return this.#giveBack(job, token);
    this.#runs.lose([id]);
    const run = this.#runs.begin(id, data.mailbox);
    if (run === undefined) {
      const dueMs = Date.now() + this.#runs.putOff(id);
      // Without this pause the worker would spin: put one off, fetch the next.
      await pause(PUT_OFF_PAUSE_MS, undefined, { signal: this.#stopping.signal }).catch(() => {});
      await job.moveToDelayed(dueMs, token);
      throw new DelayedError();
    }
    let next: Next;
    try {
      const signal = AbortSignal.any([run.lost.signal, this.#stopping.signal]);
      next = await this.#work.add(this.#handlers?.download(data, signal) ?? Promise.resolve(DONE));
    } finally {
      this.#runs.end(run);
    }
    if (run.lost.signal.aborted) return;
    if (this.#stopping.signal.aborted) return this.#giveBack(job, token);
    if (next.kind === "done") return;
    if (next.limitMs !== undefined) await limit(queue, next.limitMs);
    await job.moveToDelayed(Date.now() + next.afterMs, token);
    await this.#ended(queue, job).catch(() => {});
    throw new DelayedError();
  }

  /** This process stops, and the job is not done: another process goes on with it. */
  async #giveBack(job: Job, token: string): Promise<never> {
    await job.moveToWait(token);
    throw new WaitingError();
  }

  /** A mailbox whose poll takes longer than its interval is not polled twice here. */
  async #pollIsDue(mailbox: string): Promise<void> {
    if (this.#line.has(mailbox) || this.#dropped.has(mailbox)) return;
    if (await this.#schedules.isPutOff(mailbox)) return;
    // Another job for it may have come meanwhile.
    if (this.#line.has(mailbox)) return;
    // Not waited for: the line is in this process, and a poll that is lost with it comes again at its interval.
    void this.#work.add(this.#line.add(mailbox));
  }

  async #poll(mailbox: string): Promise<void> {
    const waitMs = (await this.#handlers?.poll(mailbox, this.#stopping.signal)) ?? 0;
    // Where Redis cannot be told, the mailbox is polled at its interval.
    await this.#reach(this.#schedules.putOff(mailbox, waitMs)).catch(() => {});
  }

  /** Throws `STOPPED` where Redis does not answer after a stop: whoever asked is not kept from ending. */
  #reach<Result>(answer: Promise<Result>): Promise<Result> {
    return unlessStopped(answer, CLOSE_TIMEOUT_MS, this.#options.signal);
  }
}

/** Ids of jobs have no colon: this is the key of no job. */
function rerunNoteOf(queue: Queue, key: string): string {
  return queue.toKey(`rerun:${key}`);
}

async function countWaiting(queue: Queue): Promise<number> {
  return (await isLimited(queue)) ? 0 : queue.getJobCountByTypes("wait", "prioritized");
}

async function isLimited(queue: Queue): Promise<boolean> {
  return (await queue.getRateLimitTtl(LIMITER.max)) > 0;
}

/** For all processes. A later answer never shortens a limit. */
async function limit(queue: Queue, limitMs: number): Promise<void> {
  if ((await queue.getRateLimitTtl(LIMITER.max)) < limitMs) await queue.rateLimit(Math.ceil(limitMs));
}

function priorityOf(expiresMs: number): number {
  const { sinceMs, stepMs, most } = PRIORITY;
  return Math.min(Math.max(Math.ceil((expiresMs - sinceMs) / stepMs), 1), most);
}
