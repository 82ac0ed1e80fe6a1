/** Work that many callers ask for: done a little later for all of them at once, and never twice at the same time. */
export class Soon {
  readonly #work: () => Promise<void>;
  readonly #afterMs: number;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();

  /** `work` must not throw. */
  constructor(work: () => Promise<void>, afterMs: number) {
    this.#work = work;
    this.#afterMs = afterMs;
  }

  ask(): void {
    this.#timer ??= setTimeout(() => void this.doNow(), this.#afterMs);
  }

  doNow(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#running = this.#running.then(this.#work);
    return this.#running;
  }

  /** Resolves when nothing is being done. */
  idle(): Promise<void> {
    return this.#running;
  }
}
