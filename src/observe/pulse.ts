/** Whether what runs gets on: work that shows no sign of life for a long time has died without ending. */

/**
 * Long enough for any single step between two signs: to force a large file to a slow disk, to read a terabyte again,
 * to wait for a service that answers at the last moment.
 */
const MOST_SILENT_MS = 30 * 60_000;

export class Pulse {
  /** When each was heard of, by a clock that nobody sets. */
  readonly #heardMs = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** `what`: for people, and unlike that of anything else that runs. */
  async during<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    this.#heardMs.set(what, this.#now());
    try {
      return await work();
    } finally {
      this.#heardMs.delete(what);
    }
  }

  /** A sign of life. */
  beat(what: string): void {
    if (this.#heardMs.has(what)) this.#heardMs.set(what, this.#now());
  }

  /** What has been silent for too long, or `undefined`. */
  stuck(): string | undefined {
    const nowMs = this.#now();
    for (const [what, heardMs] of this.#heardMs) if (nowMs - heardMs > MOST_SILENT_MS) return what;
    return undefined;
  }
}
