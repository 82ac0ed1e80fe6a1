/** The running downloads of this process and their slots. BullMQ does not know mailboxes, so this shares slots between them. */
import type { Services } from "../model/job.ts";
import { type Holder, JobSlots } from "./slots.ts";

/** One run of a job in this process. */
export interface RunningJob extends Holder {
  readonly id: string;
  /** Aborts when another process has taken the job. */
  readonly lost: AbortController;
}

/** The delay of a job without a slot grows with the number of such jobs. */
const DEFER_MS = { min: 500, perJob: 20, max: 30_000 };
/** An idle BullMQ worker checks delayed jobs at least this often. */
const PROMOTED_WITHIN_MS = 10_000;

export class Runs {
  readonly #slots: JobSlots;
  readonly #runs = new Set<RunningJob>();
  /** By id. After this time any process may run the job. */
  readonly #deferredUntilMs = new Map<string, number>();
  /** Jobs deferred since a slot was last given back. */
  #deferred = 0;

  constructor(limit: () => number, services: Services) {
    this.#slots = new JobSlots(limit, services);
  }

  /** `undefined` if no slot is free for this mailbox. */
  begin(id: string, mailbox: string): RunningJob | undefined {
    const run = { id, mailbox, service: this.#slots.serviceOf(mailbox), lost: new AbortController() };
    if (!this.#slots.isFreeFor(run)) return undefined;
    this.#slots.take(run);
    this.#runs.add(run);
    this.#deferredUntilMs.delete(id);
    return run;
  }

  hasPlaceFor(service: string): boolean {
    return this.#slots.hasPlaceFor(service);
  }

  end(run: RunningJob): void {
    this.#runs.delete(run);
    this.#slots.giveBack(run);
    this.#deferred = 0;
  }

  /** The run goes on without its slot, if there is room. */
  freeSlot(run: RunningJob): void {
    if (this.#runs.has(run) && this.#slots.free(run)) this.#deferred = 0;
  }

  /** Another worker has taken these jobs, or will take them. */
  abort(ids: readonly string[]): void {
    for (const run of this.#runs) if (ids.includes(run.id)) run.lost.abort();
  }

  /** Returns the delay of a job without a slot, in milliseconds. */
  defer(id: string): number {
    const { min, perJob, max } = DEFER_MS;
    this.#deferred++;
    const deferMs = Math.min(min + perJob * this.#deferred, max);
    const nowMs = performance.now();
    for (const [other, untilMs] of this.#deferredUntilMs) {
      if (untilMs + PROMOTED_WITHIN_MS < nowMs) this.#deferredUntilMs.delete(other);
    }
    this.#deferredUntilMs.set(id, nowMs + deferMs);
    return deferMs;
  }

  /** Deferred jobs that are not queued again yet. */
  countDeferred(): number {
    const nowMs = performance.now();
    return [...this.#deferredUntilMs.values()].filter((untilMs) => nowMs < untilMs).length;
  }

  /** Whether a delayed job waits for a slot, and not for its next attempt. */
  isDeferred(id: string): boolean {
    const untilMs = this.#deferredUntilMs.get(id);
    return untilMs !== undefined && performance.now() < untilMs + PROMOTED_WITHIN_MS;
  }
}
