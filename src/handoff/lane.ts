/** Does one kind of work for each of many, a few at once; each is known by its name, and never worked on twice at a time. */

const AT_ONCE = 4;
/** Beyond so many, whoever adds them has to come again. */
const MOST_KEPT = 1_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class Lane {
  readonly #work: (name: string) => Promise<void>;
  readonly #mayBegin: () => boolean;
  readonly #waiting = new Set<string>();
  readonly #running = new Set<string>();
  readonly #later = new Map<string, NodeJS.Timeout>();
  #idle = Promise.withResolvers<void>();

  /** `work` must not throw. What waits while `mayBegin` says no is left undone. */
  constructor(work: (name: string) => Promise<void>, mayBegin: () => boolean) {
    this.#work = work;
    this.#mayBegin = mayBegin;
  }

  add(name: string): void {
    if (this.#waiting.size >= MOST_KEPT || this.#running.has(name)) return;
    this.#forget(name);
    this.#waiting.add(name);
    this.#goOn();
  }

  addLater(name: string, afterMs: number): void {
    this.#forget(name);
    if (this.#later.size >= MOST_KEPT || !this.#mayBegin()) return;
    // One more, because a timer may be early by a part of one.
    const timer = setTimeout(() => this.add(name), Math.min(Math.max(afterMs, 0) + 1, LONGEST_TIMER_MS));
    this.#later.set(name, timer);
  }

  /** Resolves when nothing runs, and nothing waits that may begin. */
  idle(): Promise<void> {
    this.#goOn();
    return this.#idle.promise;
  }

  /** Resolves when what runs has ended. */
  close(): Promise<void> {
    this.#waiting.clear();
    for (const name of this.#later.keys()) this.#forget(name);
    return this.idle();
  }

  #goOn(): void {
    for (const name of this.#waiting) {
      if (this.#running.size >= AT_ONCE || !this.#mayBegin()) break;
      this.#waiting.delete(name);
      if (this.#running.size === 0) this.#idle = Promise.withResolvers();
      this.#running.add(name);
      void this.#work(name).finally(() => {
        this.#running.delete(name);
        this.#goOn();
      });
    }
    if (this.#running.size === 0) this.#idle.resolve();
  }

  #forget(name: string): void {
    clearTimeout(this.#later.get(name));
    this.#later.delete(name);
  }
}
