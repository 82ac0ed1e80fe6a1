/**
 * A model of the engine on Redis, for worlds: `JobQueue` for one of several processes that share a store. It differs from
 * `src/queue/bullmq.ts` only where that one uses Redis and BullMQ. Without jobs that are due it sets no timers.
 */
import { WaitGroup } from "../../../src/base/concurrency.ts";
import { LONGEST_TIMER_MS, unlessStopped } from "../../../src/base/deadline.ts";
import { Fault } from "../../../src/base/faults.ts";
import { machine } from "../../../src/base/machine.ts";
import {
  clearInterval,
  clearTimeout,
  monotonicMs,
  nextTurn,
  pause,
  pauseOrAbort,
  setInterval,
  setTimeout,
  type Timer,
} from "../../../src/base/timers.ts";
import { DAY_MS } from "../../../src/base/timetable.ts";
import {
  DONE,
  type Next,
  NO_WAIT,
  type PollSchedule,
  type Rest,
  type TransferJob,
} from "../../../src/model/job.ts";
import { Polls, type PollTurns } from "../../../src/queue/polls.ts";
import type { EngineOptions, Handlers, JobQueue } from "../../../src/queue/port.ts";
import { Runs } from "../../../src/queue/slots.ts";
import { jobLimitMs, restAskedFor, Turns, type Values } from "../../../src/queue/turns.ts";
import type { Lease, Member, NewJob, SharedStore } from "./store.ts";

export interface ModelOptions extends Omit<EngineOptions, "onEvicting"> {
  readonly role: "all" | "worker" | "scheduler";
  /** A job whose lock was not renewed for this time may go to another worker. */
  readonly lockMs: number;
  /** Between 0 and 1. */
  readonly random: () => number;
  /** As `BullOptions` has it. True if missing. */
  readonly waitForRedis?: boolean;
}

/** To be called on the machine of its process: its timers are of this machine. */
export function openModelQueue(store: SharedStore, options: ModelOptions): JobQueue {
  return new ModelEngine(store, options);
}

// As in src/queue/bullmq.ts:
const PRIORITY_STEP_MS = 600_000;
const CLOSE_TIMEOUT_MS = 3_000;
const DEFER_PAUSE_MS = 200;
const RERUN_NOTE_MS = DAY_MS;
/** `idle` looks again after pauses that grow: in virtual time, each look costs as much as any other event. */
const IDLE_CHECK_MS = { min: 50, max: 1_000 };
/** A worker gets a job within this time after it is due. */
const WAKE_MS = 5;

/** How a worker stands with one service. */
interface Worker {
  readonly service: string;
  running: number;
  isFetching: boolean;
}

class ModelEngine implements JobQueue, Member {
  readonly #store: SharedStore;
  readonly #options: ModelOptions;
  readonly #link: Link;
  readonly #machine = machine();
  readonly #stopping = new AbortController();
  /** By service. The worker of a service that is no longer configured goes on, and runs empty. */
  readonly #workers = new Map<string, Worker>();
  readonly #polls: Polls;
  readonly #runs: Runs;
  /** Running handlers, which a stop waits for. */
  readonly #work = new WaitGroup();
  /** Jobs from the moment at which they are asked for until the store has the end of their runs. */
  readonly #taken = new WaitGroup();
  /** The service of each job that this process added and that may still be untried: `idle` waits for them. */
  readonly #untried = new Map<string, string>();
  #hasSchedules = false;
  #concurrency = 0;
  #handlers: Handlers | undefined;
  /** The next time at which to look for jobs. */
  #wake: { readonly atMs: number; readonly timer: Timer } | undefined;
  #isClosed = false;

  constructor(store: SharedStore, options: ModelOptions) {
    this.#store = store;
    this.#options = options;
    this.#link = new Link(store, options);
    this.#runs = new Runs(options.slots, options.services);
    const poll = async (mailbox: string, isProbe: boolean) =>
      this.#handlers?.poll(mailbox, this.#stopping.signal, isProbe) ?? NO_WAIT;
    const turns = turnsIn(store, this.#link, options.services);
    const work = (...call: Parameters<typeof poll>) => this.#work.add(poll(...call));
    const noteRest = (service: string, rest: Rest | undefined) => {
      // The link has reported the failure.
      this.#command(() => store.limit(service, jobLimitMs(rest))).catch(() => {});
      options.onRest?.(service, rest);
    };
    const on = { rest: noteRest, served: (mailbox: string) => this.#handlers?.served(mailbox) };
    this.#polls = new Polls(work, options.services, turns, on, options.random);
    store.join(this);
  }

  async start(handlers: Handlers): Promise<void> {
    await this.#link.reach(() => this.#link.command(() => {}));
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
    return this.#queue(job, (added) => this.#command((store) => store.add(added)));
  }

  runNow(job: TransferJob): Promise<void> {
    return this.#queue(job, (added) => this.#runNow(added));
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
    for (const [key, service] of this.#untried) {
      const look = () => this.#link.reach(() => this.#progressOf(service, key));
      let progress = await look();
      for (let ms = IDLE_CHECK_MS.min; progress === "untried"; ms = Math.min(2 * ms, IDLE_CHECK_MS.max)) {
        await pause(ms);
        progress = await look();
      }
      if (progress === "limited") limited++;
      else this.#untried.delete(key);
    }
    return limited;
  }

  async depth(): Promise<number | undefined> {
    if (this.#link.isInTrouble) return undefined;
    const counting = this.#command((store) => [...this.#workers.keys()].map((it) => store.countWaiting(it)));
    // The link has reported the failure.
    const counts = await counting.catch(() => undefined);
    return counts?.reduce((sum, count) => sum + count, this.#runs.countDeferred());
  }

  async stalled(): Promise<readonly string[]> {
    if (this.#options.role === "scheduler") return [];
    const services = [...new Set(this.#options.services().values())];
    const free = services.filter((service) => this.#runs.hasPlaceFor(service));
    return this.#link.reach(() =>
      this.#command((store) => free.filter((it) => this.#workers.has(it) && store.countWaiting(it) > 0)),
    );
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    this.#store.leave(this);
    clearTimeout(this.#wake?.timer);
    this.#polls.close();
    const grace = setTimeout(() => this.#stopping.abort(), graceMs);
    while (this.#work.size > 0) await this.#work.wait();
    clearTimeout(grace);
    this.#stopping.abort();
    // Workers still record the ends of jobs. The ledger has their outcome anyway.
    const closed = new AbortController();
    const timeout = pauseOrAbort(CLOSE_TIMEOUT_MS, closed.signal);
    if (!this.#link.isCut) await Promise.race([this.#untilRecorded(), timeout]);
    closed.abort();
    this.#link.close();
  }

  async #untilRecorded(): Promise<void> {
    while (this.#taken.size > 0) await this.#taken.wait();
  }

  // Of the store

  wakeAt(service: string, dueMs: number): void {
    const worker = this.#workers.get(service);
    if (worker === undefined || !this.#mayFetch(worker)) return;
    if (this.#wake !== undefined && this.#wake.atMs <= dueMs) return;
    // The caller may be another process, whose machine must not have this timer.
    this.#machine.clearTimer(this.#wake?.timer);
    const inMs = Math.max(0, dueMs - this.#store.nowMs()) + this.#options.random() * WAKE_MS;
    const look = () => {
      this.#wake = undefined;
      this.#fill();
    };
    const timer = this.#machine.setTimeout(look, Math.min(inMs, LONGEST_TIMER_MS));
    this.#wake = { atMs: dueMs, timer };
  }

  connectionChanged(): void {
    this.#link.connectionChanged(() => this.#fill());
  }

  // Jobs

  /** Does nothing for a mailbox that is not polled now. */
  async #queue(
    { key, mailbox, trackingId, expiresMs }: TransferJob,
    addTo: (job: NewJob) => Promise<void>,
  ): Promise<void> {
    const service = this.#options.services().get(mailbox) ?? "";
    if (this.#isClosed || !this.#workers.has(service)) return;
    if (!this.#hasSchedules) this.#untried.set(key, service);
    const priority = Math.ceil(expiresMs / PRIORITY_STEP_MS);
    await this.#link.reach(() => addTo({ service, key, data: { mailbox, trackingId }, priority }));
  }

  /** A run looks for the note once its job is no longer active. So write the note first, then check the state again. */
  async #runNow(job: NewJob): Promise<void> {
    const { service, key } = job;
    let state = await this.#command((store) => store.stateOf(service, key));
    if (state === "active") {
      await this.#command((store) => store.set(rerunNoteOf(job), "1", RERUN_NOTE_MS));
      state = await this.#command((store) => store.stateOf(service, key));
    }
    if (state === "active") return;
    await this.#command((store) => (state === "delayed" ? store.promote(service, key) : store.add(job)));
  }

  /** Called after the store has recorded the end of a run. */
  async #afterRun(lease: Lease): Promise<void> {
    const mustRerun = await this.#record((store) => store.remove(rerunNoteOf(lease)));
    if (mustRerun) await this.#link.persist(() => this.#runNow(lease));
    else this.#untried.delete(lease.key);
  }

  /** `limited`: untried, because its service asked for a pause. */
  async #progressOf(service: string, key: string): Promise<"untried" | "limited" | "tried"> {
    const state = await this.#command((store) => store.stateOf(service, key));
    if (state === "delayed") return this.#runs.isDeferred(key) ? "untried" : "tried";
    if (state !== "waiting") return state === "active" ? "untried" : "tried";
    return (await this.#command((store) => store.limitMs(service))) > 0 ? "limited" : "untried";
  }

  // Workers

  #openServices(): void {
    const { slots, mayFreeSlots, services } = this.#options;
    // A job without a slot still counts for its worker.
    this.#concurrency = mayFreeSlots() ? 2 * slots() : slots();
    for (const service of services().values()) {
      if (!this.#workers.has(service)) this.#workers.set(service, { service, running: 0, isFetching: false });
    }
    this.#fill();
  }

  #mayFetch({ running, isFetching }: Worker): boolean {
    const isWorking = this.#handlers !== undefined && this.#options.role !== "scheduler" && !this.#isClosed;
    return isWorking && !isFetching && running < this.#concurrency && !this.#link.isCut;
  }

  #fill(): void {
    for (const worker of this.#workers.values()) void this.#fetch(worker);
  }

  /** Takes jobs while some are due and there is room, and then waits for the next one. */
  async #fetch(worker: Worker): Promise<void> {
    const { service } = worker;
    while (this.#mayFetch(worker) && this.#store.nextDueMs(service) <= this.#store.nowMs()) {
      worker.isFetching = true;
      // The link has reported the failure, and `#fill` comes when the store is back.
      const lease = await this.#taken.add(this.#take(service)).catch(() => {});
      worker.isFetching = false;
      if (lease !== undefined) void this.#run(worker, lease);
    }
    const dueMs = this.#store.nextDueMs(service);
    if (dueMs < Number.POSITIVE_INFINITY) this.wakeAt(service, dueMs);
  }

  #take(service: string): Promise<Lease | undefined> {
    return this.#command((store) => store.take(service, this.#options.lockMs));
  }

  async #run(worker: Worker, lease: Lease): Promise<void> {
    const { lockMs } = this.#options;
    worker.running++;
    const renewing = setInterval(() => void this.#renew(lease), lockMs / 2);
    try {
      await this.#taken.add(this.#download(lease));
    } catch (error) {
      // The process ends without the store: another worker gets the job when its lock has ended.
      if (!this.#link.isClosed) throw error;
    } finally {
      clearInterval(renewing);
      worker.running--;
      void this.#fetch(worker);
    }
  }

  async #renew(lease: Lease): Promise<void> {
    const renewing = this.#command((store) => store.renew(lease, this.#options.lockMs));
    // The link has reported the failure. The next renewal shows whether the lock was lost.
    const isHeld = await renewing.catch(() => true);
    if (!isHeld) this.#runs.abort([lease.key]);
  }

  async #download(lease: Lease): Promise<void> {
    const { service, key, data } = lease;
    if (this.#isClosed) return this.#requeue(lease);
    // This process may have lost the job and taken it again: end its earlier run.
    this.#runs.abort([key]);
    const run = this.#runs.begin(key, data.mailbox);
    if (run === undefined) {
      const untilMs = this.#store.nowMs() + this.#runs.defer(key);
      // Without this pause the worker would spin: defer one job, fetch the next.
      await pauseOrAbort(DEFER_PAUSE_MS, this.#stopping.signal);
      await this.#record((store) => store.delay(lease, untilMs));
      return;
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
    const isLost = run.lost.signal.aborted;
    if (!isLost && this.#stopping.signal.aborted) return this.#requeue(lease);
    if (isLost || next.kind === "done") {
      // False if another worker has the job.
      const isRecorded = await this.#record((store) => store.finish(lease));
      return isRecorded ? this.#afterRun(lease) : undefined;
    }
    const { afterMs, limitMs } = next;
    if (limitMs !== undefined) {
      await this.#record((store) => store.limit(service, jobLimitMs(restAskedFor(limitMs))));
      await this.#polls.rest(service, limitMs);
    }
    const isRecorded = await this.#record((store) => store.delay(lease, store.nowMs() + afterMs));
    if (isRecorded) await this.#afterRun(lease);
  }

  /** This process stops before the job is done: another process may take it. */
  async #requeue(lease: Lease): Promise<void> {
    await this.#record((store) => store.requeue(lease));
  }

  #command<Result>(work: (store: SharedStore) => Result): Promise<Result> {
    return this.#link.command(work);
  }

  #record<Result>(work: (store: SharedStore) => Result): Promise<Result> {
    return this.#link.persist(() => this.#link.command(work));
  }
}

// As in src/queue/bullmq-watch.ts and bullmq-connection.ts:
const CHECK_EVERY_MS = 5_000;
const QUIET_MS = 8_000;
const RETRY_MS = 1_000;
const STOP_MS = 3_000;
const LONGEST_RECONNECT_MS = 5_000;
const KEY = "redis";
/** How long a command or its answer is under way. Most of them take no time, so that worlds are quick. */
const TRIP_MS = 3;

/** The connection of one process to the store, and the trouble that it reports. */
class Link {
  readonly #store: SharedStore;
  readonly #options: ModelOptions;
  readonly #machine = machine();
  readonly #closing = new AbortController();
  /** When a command failed last, while the trouble is shown. */
  #failedMs: number | undefined;
  #isCut: boolean;

  constructor(store: SharedStore, options: ModelOptions) {
    this.#store = store;
    this.#options = options;
    this.#isCut = store.isAway;
  }

  /** The connection is not established. */
  get isCut(): boolean {
    return this.#isCut;
  }

  get isInTrouble(): boolean {
    return this.#isCut || this.#failedMs !== undefined;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Throws `QUEUE_UNREACHABLE`, also if the work was done and only the answer is missing. */
  async command<Result>(work: (store: SharedStore) => Result): Promise<Result> {
    await nextTurn();
    await this.#travel();
    const result = work(this.#store);
    await this.#travel();
    return result;
  }

  /** As `RedisWatch` does: throws the trouble unless the process waits for Redis, and `STOPPED`. */
  async reach<Result>(work: () => Promise<Result>): Promise<Result> {
    const { signal, waitForRedis = true } = this.#options;
    for (;;) {
      try {
        return await unlessStopped(work(), STOP_MS, signal);
      } catch (error) {
        if (!isUnreachable(error) || !waitForRedis || this.isClosed) throw error;
        await pause(RETRY_MS, signal).catch(() => {
          throw new Fault("STOPPED");
        });
      }
    }
  }

  /** Repeats work until the store does it, as commands of BullMQ wait for the connection. Throws once it is closed. */
  async persist<Result>(work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!isUnreachable(error) || this.isClosed) throw error;
        await pauseOrAbort(RETRY_MS, this.#closing.signal);
      }
    }
  }

  /** `onBack` is called when the connection is established again. */
  connectionChanged(onBack: () => void): void {
    const { isAway } = this.#store;
    if (isAway) this.#isCut = true;
    const notice = () => {
      if (this.isClosed) return;
      if (this.#store.isAway) return void this.#fail();
      this.#isCut = false;
      if (!isAway) onBack();
    };
    // The caller is not this process. A lost connection is noticed at once, and reconnects come after pauses.
    this.#machine.setTimeout(notice, isAway ? 0 : this.#options.random() * LONGEST_RECONNECT_MS);
  }

  close(): void {
    this.#closing.abort();
  }

  async #travel(): Promise<void> {
    const { random } = this.#options;
    if (random() < 0.25) await pause(random() * TRIP_MS);
    if (this.#isCut || this.#store.isAway || this.isClosed) throw this.#fail();
  }

  #fail(): Fault {
    const fault = new Fault("QUEUE_UNREACHABLE", { detail: "the store of the world (ECONNREFUSED)" });
    if (this.isClosed) return fault;
    if (this.#failedMs === undefined) {
      this.#options.outage.add(KEY, fault);
      setTimeout(() => this.#check(), CHECK_EVERY_MS);
    }
    this.#failedMs = monotonicMs();
    return fault;
  }

  /** Ends the trouble when no command has failed for a while. */
  #check(): void {
    if (this.isClosed || this.#failedMs === undefined) return;
    const isQuiet = !this.#isCut && monotonicMs() - this.#failedMs >= QUIET_MS;
    if (!isQuiet) return void setTimeout(() => this.#check(), CHECK_EVERY_MS);
    this.#failedMs = undefined;
    this.#options.outage.clear(KEY);
  }
}

// As in src/queue/bullmq-polls.ts:
function turnsIn(store: SharedStore, link: Link, services: EngineOptions["services"]): PollTurns {
  const values: Values = {
    get: (key) => link.command(() => store.get(key)),
    ttlMs: (key) => link.command(() => store.ttlMs(key)),
    set: (key, value, ms, isNew = false) =>
      link.command(() => {
        if (isNew) return store.setIfMissing(key, value, ms);
        store.set(key, value, ms);
        return true;
      }),
    remove: (keys) => link.command(() => keys.map((key) => store.remove(key)).includes(true)),
  };
  const turns = new Turns(values, services, true);
  // The link has reported the failure.
  return {
    take: (poll) => turns.take(poll).catch(() => ({ waitMs: RETRY_MS })),
    end: (...call) => turns.end(...call).catch(() => undefined),
    ask: (...call) => turns.ask(...call).catch(() => {}),
    reset: (...call) => link.reach(() => turns.reset(...call)),
    endRests: () => link.reach(() => turns.endRests()),
  };
}

function isUnreachable(error: unknown): boolean {
  return error instanceof Fault && error.code === "QUEUE_UNREACHABLE";
}

function rerunNoteOf({ service, key }: NewJob): string {
  return `rerun:${service}:${key}`;
}
