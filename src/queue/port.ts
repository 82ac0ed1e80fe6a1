/**
 * Runs jobs. The queue is disposable: the ledger holds the outcome of each transfer, and the next poll finds the rest. An
 * engine may lose a job, and may run it twice. It must not run two jobs of one key at the same time.
 */
import type { Next, PollSchedule, TransferJob } from "../model/job.ts";
import type { TransferKey } from "../model/record.ts";

export interface Handlers {
  /**
   * Returns for how many milliseconds the mailbox is not polled again; 0: its interval decides. `signal` aborts when the
   * engine stops, or when the job is no longer ours. Must not throw.
   */
  poll(mailbox: string, signal: AbortSignal): Promise<number>;
  /** After an answer with `limitMs` no job of that service begins until the limit ends, in any process. Must not throw. */
  download(key: TransferKey, signal: AbortSignal): Promise<Next>;
}

export interface JobQueue {
  /** Starts running jobs. Called once, before the others. */
  start(handlers: Handlers): Promise<void>;
  /**
   * From now on these mailboxes are polled, each at its interval with some jitter, and no others. New mailboxes, and those
   * that wait because a poll failed, are polled at once.
   */
  schedule(polls: readonly PollSchedule[]): Promise<void>;
  /** Polls these mailboxes now, in this process, whether they are scheduled or not. Resolves when that is done. */
  pollNow(mailboxes: readonly string[]): Promise<void>;
  /** Does nothing where a job of this key is queued, delayed or running; a delayed one is not hurried. */
  add(job: TransferJob): Promise<void>;
  /**
   * Runs a job at once: ends its delay, or adds it where there is none. A job that runs now, in this process or another, runs
   * once more when that run ends. A limit of its service still holds.
   */
  hurry(job: TransferJob): Promise<void>;
  /**
   * Resolves when each job that this process added was tried, by this process or another, or waits for its delay or for the
   * end of a limit, and when the jobs and polls are over that ran in this process by then. Waits for no other job of another
   * process. For a process that schedules nothing.
   */
  idle(): Promise<void>;
  /** How many jobs wait for a slot; none that is delayed or held back by a limit. `undefined` while Redis is away. */
  depth(): Promise<number | undefined>;
  /** Begins nothing new, gives what runs so long to end, then aborts it, and resolves when nothing runs. */
  close(graceMs: number): Promise<void>;
}
