/** The download jobs that run in this process, and the slots that they hold. BullMQ knows no mailboxes: fairness is made here. */
import type { Services } from "../model/job.ts";
import { type Holder, Slots } from "./slots.ts";

/** One run of a job in this process. */
export interface Run extends Holder {
  readonly id: string;
  /** Aborts when another process has taken the job over. */
  readonly lost: AbortController;
}

/** A job for which no slot is free is put off so long, and longer the more there are. */
const PUT_OFF_MS = { least: 500, perJob: 20, most: 30_000 };
/** A worker of BullMQ that waits for jobs looks at delayed ones at least so often. */
const PROMOTED_WITHIN_MS = 10_000;

export class Runs {
  readonly #slots: Slots;
  readonly #runs = new Set<Run>();
  /** Until when jobs are put off, by id. Another process may run them then. */
  readonly #putOffUntilMs = new Map<string, number>();
  /** How many jobs were put off since a slot was last given back. */
  #putOff = 0;

  constructor(limit: number, services: Services) {
    this.#slots = new Slots(limit, services);
  }

  /** `undefined` where no slot is free for this mailbox. */
  begin(id: string, mailbox: string): Run | undefined {
    const run = { id, mailbox, service: this.#slots.serviceOf(mailbox), lost: new AbortController() };
    if (!this.#slots.isFreeFor(run)) return undefined;
    this.#slots.take(run);
    this.#runs.add(run);
    this.#putOffUntilMs.delete(id);
    return run;
  }

  end(run: Run): void {
    this.#runs.delete(run);
    this.#slots.giveBack(run);
    this.#putOff = 0;
  }

  /** Another worker has these jobs now, or will. */
  lose(ids: readonly string[]): void {
    for (const run of this.#runs) if (ids.includes(run.id)) run.lost.abort();
  }

  /** For how long a job without a slot is put off. */
  putOff(id: string): number {
    const { least, perJob, most } = PUT_OFF_MS;
    this.#putOff++;
    const putOffMs = Math.min(least + perJob * this.#putOff, most);
    const nowMs = performance.now();
    for (const [other, untilMs] of this.#putOffUntilMs) {
      if (untilMs + PROMOTED_WITHIN_MS < nowMs) this.#putOffUntilMs.delete(other);
    }
    this.#putOffUntilMs.set(id, nowMs + putOffMs);
    return putOffMs;
  }

  /** How many jobs this process put off that are not queued again yet. */
  countPutOff(): number {
    const nowMs = performance.now();
    return [...this.#putOffUntilMs.values()].filter((untilMs) => nowMs < untilMs).length;
  }

  /** Whether a delayed job waits for a slot, and not for its next attempt. */
  isPutOff(id: string): boolean {
    const untilMs = this.#putOffUntilMs.get(id);
    return untilMs !== undefined && performance.now() < untilMs + PROMOTED_WITHIN_MS;
  }
}
