/** The collect jobs that run in this process, and the slots that they hold. BullMQ knows no mailboxes: fairness is made here. */
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

export class Runs {
  readonly #slots: Slots;
  readonly #runs = new Set<Run>();
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
  putOff(): number {
    const { least, perJob, most } = PUT_OFF_MS;
    this.#putOff++;
    return Math.min(least + perJob * this.#putOff, most);
  }
}
