/**
 * The engine for many machines: BullMQ on Redis. Retries, delays, priorities and the recovery of jobs whose worker died
 * are BullMQ's. Jobs carry ids only, and are removed when they are done. Each service has a queue of its own,
 * so that no job waits behind those of another service.
 *
 * BullMQ runs a job at least once: when a worker is suspended for longer than its lock lasts, another worker takes the job.
 * The first run's signal then aborts, and the ledger prevents a second delivery.
 */

import { setTimeout as pause } from "node:timers/promises";
import {
  DelayedError,
  type Job,
  Queue,
  type QueueOptions,
  WaitingError,
  type Worker,
  type WorkerOptions,
} from "bullmq";
import * as v from "valibot";
import { WaitGroup } from "../base/concurrency.ts";
import { unlessStopped } from "../base/deadline.ts";
import { random } from "../base/random.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { DONE, type Next, NO_WAIT, type PollSchedule, type Rest, type TransferJob } from "../model/job.ts";
import { connect, inspectRedis, type RedisClient } from "./bullmq-connection.ts";
import { sharedTurns } from "./bullmq-polls.ts";
import {
  addJob,
  countWaiting,
  downloadQueueOf,
  isLimited,
  type JobData,
  JobShape,
  LIMITER,
  limit,
  type NewJob,
  PausingWorker,
} from "./bullmq-services.ts";
import { RedisWatch, type WatchOptions } from "./bullmq-watch.ts";
import { Polls } from "./polls.ts";
import type { EngineOptions, Handlers, JobQueue } from "./port.ts";
import { Runs } from "./slots.ts";
import { jobLimitMs, restAskedFor } from "./turns.ts";

export interface BullOptions extends EngineOptions, WatchOptions {
  readonly role: "all" | "worker" | "scheduler";
  /** A job whose lock was not renewed for this time may go to another worker. */
  readonly lockMs: number;
}

/** BullMQ's event streams are not used here: keep few events. */
const EVENTS_KEPT = 100;
/** Priorities go up to 2²¹. In steps of ten minutes since this day, they last until 2065. */
const PRIORITY = { sinceMs: Date.UTC(2026, 0, 1), stepMs: 600_000, max: 2 ** 21 - 1 };
/** BullMQ waits for Redis even while it closes: after a stop only for this time. */
const CLOSE_TIMEOUT_MS = 3_000;
/** A worker without a free slot waits before it fetches the next job. */
const DEFER_PAUSE_MS = 200;
const IDLE_CHECK_MS = 50;
/** After this time without an answer, Redis is as good as away. */
const DEPTH_TIMEOUT_MS = 1_000;
/** How long Redis keeps the note that a running job has to run again. If the run takes longer, the next poll adds the job. */
const RERUN_NOTE_MS = 24 * 3_600_000;
const REMOVE_WHEN_DONE = { removeOnComplete: true, removeOnFail: true } as const;

/**
 * Connects in the background. `start` waits until Redis can be used. It throws `QUEUE_UNSUITABLE` and, without
 * `waitForRedis`, also `QUEUE_UNREACHABLE` and `QUEUE_REFUSED`.
 */
export function openBullQueue(options: BullOptions): JobQueue {
  return new BullEngine(options, connect(options.redis));
}

class BullEngine implements JobQueue {
  readonly #options: BullOptions;
  readonly #client: RedisClient;
  readonly #watch: RedisWatch;
  readonly #stopping = new AbortController();
  readonly #queueOptions: QueueOptions;
  /** Download jobs, by service. The queue of a service that is no longer configured stays open, and runs empty. */
  readonly #downloads = new Map<string, Queue<JobData>>();
  readonly #polls: Polls;
  readonly #runs: Runs;
  /** Running handlers, which a stop waits for. Calls to Redis are not among them, and may be cut off. */
  readonly #work = new WaitGroup();
  readonly #workers: Worker[] = [];
  readonly #downloaders: Worker<JobData>[] = [];
  /** Jobs that this process added and that may still be untried: `idle` waits for them. */
  readonly #untried = new Map<string, Queue<JobData>>();
  /** A process with schedules runs until it is stopped: it never calls `idle`, and needs no `#untried`. */
  #hasSchedules = false;
  #handlers: Handlers | undefined;
  #closed = false;

  constructor(options: BullOptions, client: RedisClient) {
    this.#options = options;
    this.#client = client;
    this.#runs = new Runs(options.slots, options.services);
    this.#watch = new RedisWatch(client, options);
    const streams = { events: { maxLen: EVENTS_KEPT } };
    this.#queueOptions = { ...this.#shared(), streams, defaultJobOptions: REMOVE_WHEN_DONE };
    const turns = sharedTurns(options, client, this.#watch);
    const poll = async (mailbox: string, isProbe: boolean) =>
      this.#handlers?.poll(mailbox, this.#stopping.signal, isProbe) ?? NO_WAIT;
    const work = (...call: Parameters<typeof poll>) => this.#work.add(poll(...call));
    const noteRest = (service: string, rest: Rest | undefined) => {
      const queue = this.#downloads.get(service);
      if (queue !== undefined) limit(queue, jobLimitMs(rest)).catch(this.#watch.report);
      options.onRest?.(service, rest);
    };
    const on = { rest: noteRest, served: (mailbox: string) => this.#handlers?.served(mailbox) };
    this.#polls = new Polls(work, options.services, turns, on, random);
  }

  async start(handlers: Handlers): Promise<void> {
    await this.#watch.untilUsable();
    const { evictionPolicy } = await this.#watch.reach(() => inspectRedis(this.#client));
    if (evictionPolicy !== "noeviction") this.#options.onEvicting(evictionPolicy);
    this.#handlers = handlers;
    this.#openServices();
  }

  async schedule(polls: readonly PollSchedule[]): Promise<void> {
    this.#hasSchedules = true;
    this.#untried.clear();
    this.#openServices();
    if (this.#options.role !== "worker") await this.#polls.schedule(polls);
  }

  pollNow(mailboxes: readonly string[]): Promise<void> {
    return this.#work.add(this.#polls.pollNow(mailboxes));
  }

  pollOnce(mailboxes: readonly string[]): Promise<readonly string[]> {
    return this.#work.add(this.#polls.pollOnce(mailboxes));
  }

  add(job: TransferJob): Promise<void> {
    return this.#queue(job, (queue, added) => addJob(queue, this.#client, added));
  }

  runNow(job: TransferJob): Promise<void> {
    return this.#queue(job, (queue, added) => this.#runNow(queue, added));
  }

  async idle(): Promise<void> {
    for (;;) {
      const limited = await this.#waitForTries();
      // Jobs of other processes count only while they run here: other processes may add jobs for ever.
      const hasWorked = this.#work.size > 0;
      await this.#work.wait();
      const hasNewJobs = this.#untried.size > limited;
      if (!hasWorked && !hasNewJobs) return;
    }
  }

  /** Returns how many of the jobs are limited, and so stay untried. */
  async #waitForTries(): Promise<number> {
    let limited = 0;
    for (const [key, queue] of this.#untried) {
      const look = () => this.#watch.reach(() => this.#progressOf(queue, key));
      let progress = await look();
      while (progress === "untried") {
        await pause(IDLE_CHECK_MS);
        progress = await look();
      }
      if (progress === "limited") limited++;
      else this.#untried.delete(key);
    }
    return limited;
  }

  async depth(): Promise<number | undefined> {
    if (this.#client.status !== "ready" || this.#watch.fault !== undefined) return undefined;
    const signal = AbortSignal.any([this.#options.signal, AbortSignal.timeout(DEPTH_TIMEOUT_MS)]);
    const counting = Promise.all([...this.#downloads.values()].map(countWaiting));
    const counts = await unlessStopped(counting, 0, signal).catch((error: unknown) => {
      this.#watch.report(error);
      return undefined;
    });
    return counts?.reduce((sum, count) => sum + count, this.#runs.countDeferred());
  }

  async stalled(): Promise<readonly string[]> {
    if (this.#options.role === "scheduler") return [];
    const free = [...new Set(this.#options.services().values())].filter((it) => this.#runs.hasPlaceFor(it));
    const counts = free.map(async (service) => {
      const queue = this.#downloads.get(service);
      return queue === undefined ? 0 : countWaiting(queue);
    });
    const waiting = await unlessStopped(Promise.all(counts), 0, this.#options.signal);
    return free.filter((_, at) => (waiting[at] ?? 0) > 0);
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    this.#watch.close();
    if (this.#handlers === undefined) return this.#client.disconnect();
    this.#polls.close();
    const grace = setTimeout(() => this.#stopping.abort(), graceMs);
    await this.#closeWorkers();
    clearTimeout(grace);
    this.#stopping.abort();
    const rest = [
      ...this.#workers.map((worker) => worker.close(true)),
      ...[...this.#downloads.values()].map((queue) => queue.close()),
    ];
    const closed = new AbortController();
    const timeout = pauseOrAbort(CLOSE_TIMEOUT_MS, closed.signal);
    await Promise.race([Promise.allSettled(rest), timeout]);
    closed.abort();
    this.#client.disconnect();
  }

  /** Resolves when the workers have closed. Once all handlers have ended, it does not wait long for Redis. */
  async #closeWorkers(): Promise<void> {
    let isClosed = false;
    void Promise.allSettled(this.#workers.map((worker) => worker.close())).then(() => {
      isClosed = true;
    });
    let waitedMs = 0;
    while (!isClosed && waitedMs < CLOSE_TIMEOUT_MS) {
      // Workers still record finished jobs in Redis. The ledger has their outcome anyway.
      const onlyRecords = this.#work.size === 0;
      if (onlyRecords && this.#client.status !== "ready") return;
      if (onlyRecords && this.#stopping.signal.aborted) waitedMs += IDLE_CHECK_MS;
      await pause(IDLE_CHECK_MS);
    }
  }

  /** Does nothing for a mailbox that is not polled now. */
  async #queue(
    { key, mailbox, trackingId, expiresMs }: TransferJob,
    addTo: (queue: Queue<JobData>, job: NewJob) => Promise<void>,
  ): Promise<void> {
    const queue = this.#downloads.get(this.#options.services().get(mailbox) ?? "");
    if (this.#closed || queue === undefined) return;
    if (!this.#hasSchedules) this.#untried.set(key, queue);
    const job = { key, data: { mailbox, trackingId }, priority: priorityOf(expiresMs) };
    await this.#watch.reach(() => addTo(queue, job));
  }

  /** A run looks for the note once its job is no longer active. So write the note first, then check the state again. */
  async #runNow(queue: Queue<JobData>, job: NewJob): Promise<void> {
    const { key } = job;
    let state = await queue.getJobState(key);
    if (state === "active") {
      await this.#client.set(rerunNoteOf(queue, key), 1, "PX", RERUN_NOTE_MS);
      state = await queue.getJobState(key);
    }
    if (state === "active") return;
    if (state !== "delayed") return addJob(queue, this.#client, job);
    const delayed = await queue.getJob(key);
    // Also fails when the delay has just ended.
    await delayed?.promote().catch(this.#watch.report);
  }

  /** Called after Redis has recorded the end of a run. */
  async #afterRun(queue: Queue<JobData>, { id = "", data, priority }: Job<JobData>): Promise<void> {
    const mustRerun = (await this.#client.del(rerunNoteOf(queue, id))) === 1;
    if (mustRerun) await this.#runNow(queue, { key: id, data, priority });
    else this.#untried.delete(id);
  }

  /** `limited`: untried, because its service asked for a pause. */
  async #progressOf(queue: Queue, key: string): Promise<"untried" | "limited" | "tried"> {
    const state = await queue.getJobState(key);
    if (state === "delayed") return this.#runs.isDeferred(key) ? "untried" : "tried";
    if (state === "waiting" || state === "prioritized")
      return (await isLimited(queue)) ? "limited" : "untried";
    return state === "active" ? "untried" : "tried";
  }

  /** Opens the queue of each new service. */
  #openServices(): void {
    const { role, slots, mayFreeSlots, services } = this.#options;
    // A job without a slot still counts for BullMQ. A worker reads its concurrency before each job.
    const concurrency = mayFreeSlots() ? 2 * slots() : slots();
    for (const worker of this.#downloaders) worker.concurrency = concurrency;
    for (const service of services().values()) {
      if (this.#downloads.has(service)) continue;
      const queue = this.#openQueue<JobData>(downloadQueueOf(service));
      this.#downloads.set(service, queue);
      if (role === "scheduler" || this.#handlers === undefined) continue;
      const download = (job: Job<JobData>, token: string) => this.#download(queue, job, token);
      const worker = this.#addWorker(queue, { concurrency, limiter: LIMITER }, download);
      this.#downloaders.push(worker);
      // If Redis is away, the next poll adds the job.
      worker.on("completed", (job) => void this.#afterRun(queue, job).catch(this.#watch.report));
    }
  }

  #openQueue<Data>(name: string): Queue<Data> {
    const queue = new Queue<Data>(name, this.#queueOptions);
    queue.on("error", this.#watch.report);
    return queue;
  }

  #shared() {
    const { redis } = this.#options;
    return { connection: this.#client, prefix: redis.prefix, skipVersionCheck: true };
  }

  #addWorker<Data>(
    queue: Queue,
    options: Pick<WorkerOptions, "concurrency" | "limiter">,
    process: (job: Job<Data>, token: string) => Promise<void>,
  ): Worker<Data> {
    const { lockMs } = this.#options;
    const worker = new PausingWorker<Data>(queue.name, (job, token = "") => process(job, token), {
      ...this.#shared(),
      ...options,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      // No limit on workers that die with a job: the transfer's record decides when to give up.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    });
    worker.on("error", this.#watch.report);
    worker.on("failed", (_job, error) => void this.#watch.report(error));
    worker.on("lockRenewalFailed", (ids) => this.#runs.abort(ids));
    this.#workers.push(worker);
    // A dashboard may have left it paused.
    queue.resume().catch(this.#watch.report);
    return worker;
  }

  async #download(queue: Queue<JobData>, job: Job<JobData>, token: string): Promise<void> {
    const { id = "" } = job;
    const parsed = v.safeParse(JobShape, job.data);
    // Not a job of ours: drop it.
    if (!parsed.success) return;
    const data = parsed.output;
    if (this.#stopping.signal.aborted) return this.#requeue(job, token);
    // This process may have lost the job and taken it again: end its earlier run.
    this.#runs.abort([id]);
    const run = this.#runs.begin(id, data.mailbox);
    if (run === undefined) {
      const dueMs = Date.now() + this.#runs.defer(id);
      // Without this pause the worker would spin: defer one job, fetch the next.
      await pauseOrAbort(DEFER_PAUSE_MS, this.#stopping.signal);
      await job.moveToDelayed(dueMs, token);
      throw new DelayedError();
    }
    let next: Next;
    try {
      const signal = AbortSignal.any([run.lost.signal, this.#stopping.signal]);
      next = await this.#work.add(
        this.#handlers?.download(data, signal, () => this.#runs.freeSlot(run)) ?? Promise.resolve(DONE),
      );
    } finally {
      this.#runs.end(run);
    }
    if (run.lost.signal.aborted) return;
    if (this.#stopping.signal.aborted) return this.#requeue(job, token);
    if (next.kind === "done") return;
    if (next.limitMs !== undefined) {
      await limit(queue, jobLimitMs(restAskedFor(next.limitMs)));
      await this.#polls.rest(run.service, next.limitMs);
    }
    await job.moveToDelayed(Date.now() + next.afterMs, token);
    await this.#afterRun(queue, job).catch(this.#watch.report);
    throw new DelayedError();
  }

  /** This process stops before the job is done: another process may take it. */
  async #requeue(job: Job, token: string): Promise<never> {
    await job.moveToWait(token);
    throw new WaitingError();
  }
}

/** Job ids have no colon, so this is never the key of a job. */
function rerunNoteOf(queue: Queue, key: string): string {
  return queue.toKey(`rerun:${key}`);
}

function priorityOf(expiresMs: number): number {
  const { sinceMs, stepMs, max } = PRIORITY;
  return Math.min(Math.max(Math.ceil((expiresMs - sinceMs) / stepMs), 1), max);
}
