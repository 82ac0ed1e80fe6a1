/** Runs one kind of work for many keys: a few at once, and never twice at a time for one key. */

const AT_ONCE = 4;
/** Keys beyond this number are dropped: the next look adds them again. */
const MOST_KEPT = 1_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class Lane {
  readonly #work: (key: string) => Promise<void>;
  readonly #mayBegin: () => boolean;
  readonly #waiting = new Set<string>();
  readonly #running = new Set<string>();
  readonly #later = new Map<string, NodeJS.Timeout>();
  #idle = Promise.withResolvers<void>();

  /** `work` must not throw. Waiting keys are not started while `mayBegin` is false. */
  constructor(work: (key: string) => Promise<void>, mayBegin: () => boolean) {
    this.#work = work;
    this.#mayBegin = mayBegin;
  }

  add(key: string): void {
    if (this.#waiting.size >= MOST_KEPT || this.#running.has(key)) return;
    this.#cancelTimer(key);
    this.#waiting.add(key);
    this.#startWaiting();
  }

  addLater(key: string, afterMs: number): void {
    this.#cancelTimer(key);
    if (this.#later.size >= MOST_KEPT || !this.#mayBegin()) return;
    // A timer may fire up to a millisecond early.
    const timer = setTimeout(() => this.add(key), Math.min(Math.max(afterMs, 0) + 1, LONGEST_TIMER_MS));
    this.#later.set(key, timer);
  }

  /** Resolves when nothing runs, and nothing that waits may begin. */
  idle(): Promise<void> {
    this.#startWaiting();
    return this.#idle.promise;
  }

  /** Drops waiting keys, and resolves when running work has ended. */
  close(): Promise<void> {
    this.#waiting.clear();
    for (const key of this.#later.keys()) this.#cancelTimer(key);
    return this.idle();
  }

  #startWaiting(): void {
    for (const key of this.#waiting) {
      if (this.#running.size >= AT_ONCE || !this.#mayBegin()) break;
      this.#waiting.delete(key);
      if (this.#running.size === 0) this.#idle = Promise.withResolvers();
      this.#running.add(key);
      void this.#work(key).finally(() => {
        this.#running.delete(key);
        this.#startWaiting();
      });
    }
    if (this.#running.size === 0) this.#idle.resolve();
  }

  #cancelTimer(key: string): void {
    clearTimeout(this.#later.get(key));
    this.#later.delete(key);
  }
}
