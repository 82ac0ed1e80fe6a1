/** The places of one process for collect jobs, and who has them. BullMQ knows no mailboxes: fairness is made here. */

/** One run of a job in this process. */
export interface Run {
  readonly id: string;
  readonly mailbox: string;
  /** Aborts when the job is not this run's any more. */
  readonly lost: AbortController;
}

/** A job that would take a mailbox's neighbours the last place is put off so long, and longer the more there are. */
const PUT_OFF_MS = { least: 500, perJob: 20, most: 30_000 };

export class Places {
  readonly #count: number;
  readonly #runs = new Set<Run>();
  /** How many jobs were put off since a place was last given back. */
  #putOff = 0;

  constructor(count: number) {
    this.#count = count;
  }

  take(id: string, mailbox: string): Run {
    const run = { id, mailbox, lost: new AbortController() };
    this.#runs.add(run);
    return run;
  }

  giveBack(run: Run): void {
    this.#runs.delete(run);
    this.#putOff = 0;
  }

  /** Somebody else has these jobs now, or will. */
  lose(ids: readonly string[]): void {
    for (const run of this.#runs) if (ids.includes(run.id)) run.lost.abort();
  }

  /** No mailbox may take every place while another could have something to do. */
  hasRoomFor(mailbox: string, mailboxes: number): boolean {
    if (this.#count === 1 || mailboxes < 2) return true;
    return [...this.#runs].filter((run) => run.mailbox === mailbox).length < this.#count - 1;
  }

  /** For how long a job that there is no room for is put off. */
  putOff(): number {
    const { least, perJob, most } = PUT_OFF_MS;
    this.#putOff++;
    return Math.min(least + perJob * this.#putOff, most);
  }
}
