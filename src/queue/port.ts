/**
 * Runs jobs. The queue is disposable: the ledger holds the outcome of each transfer, and the next poll finds the rest. An
 * engine may lose a job or run it twice, but must not run two jobs with the same key at the same time.
 */
import type { Outage } from "../base/outage.ts";
import type { Next, PollSchedule, PollWait, Rest, Services, TransferJob } from "../model/job.ts";
import type { TransferKey } from "../model/record.ts";

export interface Handlers {
  /**
   * After a result with `limitMs`, the service rests in all processes (see `turns.ts`), except for `pollNow`. `isProbe`: the
   * service rests, and this poll asks whether it still does. `signal` aborts when the engine stops, or when another process
   * has taken the job. Must not throw.
   */
  poll(mailbox: string, signal: AbortSignal, isProbe: boolean): Promise<PollWait>;
  /** Another process polls this mailbox, with success. What failed here before is over. Must not throw. */
  served(mailbox: string): void;
  /**
   * After a result with `limitMs`, the service rests in all processes. Must not throw. `freeSlot`: the job no longer downloads, and another one may have its slot. It does nothing if too many jobs already
   * go on without a slot. May be called twice.
   */
  download(key: TransferKey, signal: AbortSignal, freeSlot: () => void): Promise<Next>;
}

export interface JobQueue {
  /**
   * Starts running jobs. Called once; before it only `depth` and `close` may be called. On Redis it waits for the connection
   * and throws `QUEUE_UNREACHABLE`, `QUEUE_REFUSED` or `QUEUE_UNSUITABLE`.
   */
  start(handlers: Handlers): Promise<void>;
  /**
   * Polls these mailboxes and no others, each at its interval with some jitter. New mailboxes, and mailboxes that wait after
   * a failed poll, are polled at once. A second call forgets the rests of services.
   */
  schedule(polls: readonly PollSchedule[]): Promise<void>;
  /** Polls these mailboxes now, in this process, scheduled or not. Resolves when the polls are over. */
  pollNow(mailboxes: readonly string[]): Promise<void>;
  /**
   * The same in a process that schedules nothing, except for services that asked for a rest of more than a minute. Returns
   * the mailboxes that it did not poll.
   */
  pollOnce(mailboxes: readonly string[]): Promise<readonly string[]>;
  /** Does nothing if a job with this key is queued, delayed or running. A delay is not shortened. */
  add(job: TransferJob): Promise<void>;
  /**
   * Ends the delay of a job, or adds it if there is none. A running job, here or in another process, runs once more after
   * this run. A limit of its service still applies.
   */
  runNow(job: TransferJob): Promise<void>;
  /**
   * Resolves when nothing runs in this process, and each job that it added was tried by some process, is delayed or is
   * limited. Jobs of other processes are not awaited. Only for a process that schedules nothing.
   */
  idle(): Promise<void>;
  /** Jobs that wait for a slot, without delayed and limited ones. `undefined` while Redis is away. */
  depth(): Promise<number | undefined>;
  /**
   * The services that have a due job and a free slot in this process. A healthy engine has none, or only for a moment.
   * Fails, or does not answer, while Redis is away.
   */
  stalled(): Promise<readonly string[]>;
  /** Starts nothing new, aborts running jobs after `graceMs`, and resolves when nothing runs. */
  close(graceMs: number): Promise<void>;
}

export interface EngineOptions {
  /** Downloads at once in this process, as configured now. The engine adds one for each service beyond the first. */
  slots(): number;
  readonly services: Services;
  /** Whether jobs may go on without their slot, as configured now. */
  mayFreeSlots(): boolean;
  readonly outage: Outage;
  /** Called when a service begins to rest, when it asks for more, and when the rest is over. */
  onRest?(service: string, rest: Rest | undefined): void;
  /** Where an engine that shares nothing keeps the rests of services for the next process. */
  readonly restsFile?: string;
  /** Called when the eviction policy lets Redis drop jobs. */
  onEvicting(policy: string): void;
  readonly signal: AbortSignal;
}
