/** Ends work that stands still, or takes too long altogether. */

export interface DeadlineLimits {
  /** Without progress. */
  readonly stallMs: number;
  readonly totalMs: number;
}

export class Deadline {
  readonly #over = new AbortController();
  readonly #total: NodeJS.Timeout;
  readonly #stall: NodeJS.Timeout;
  #reason: string | undefined;

  constructor({ stallMs, totalMs }: DeadlineLimits) {
    this.#total = setTimeout(() => this.#end(`not done after ${inWords(totalMs)}`), totalMs);
    this.#stall = setTimeout(() => this.#end(`no progress for ${inWords(stallMs)}`), stallMs);
  }

  /** Aborts when it has passed. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** For people; `undefined` until it has passed. */
  get reason(): string | undefined {
    return this.#reason;
  }

  progress(): void {
    if (this.#reason === undefined) this.#stall.refresh();
  }

  /** To be called when the work is over. */
  close(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#stall);
  }

  #end(reason: string): void {
    this.#reason = reason;
    this.close();
    this.#over.abort();
  }
}

function inWords(ms: number): string {
  return ms < 60_000 ? `${ms / 1000} s` : `${Math.round(ms / 60_000)} min`;
}
