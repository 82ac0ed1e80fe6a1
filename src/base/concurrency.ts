/** Limits, locks, shared runs and pools. Their state does not outlive the work under way. */

import { LONGEST_TIMER_MS, unlessStopped } from "./deadline.ts";
import { clearTimeout, setTimeout, type Timer } from "./timers.ts";

/**
 * Runs `work` for each item, at most `limit` at once. After the first failure no further run starts, and the signal of all
 * running work aborts. The failure is thrown when all runs have ended. `signal` is only passed on to `work`.
 */
export async function forEachLimit<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  work: (item: Item, signal: AbortSignal) => Promise<unknown>,
  signal?: AbortSignal,
): Promise<void> {
  const failed = new AbortController();
  const either = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal]);
  const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let failure: { readonly error: unknown } | undefined;
  const runNext = async () => {
    try {
      while (true) {
        const next = await source.next();
        if (next.done || failure !== undefined) return;
        await work(next.value, either);
      }
    } catch (error) {
      failure ??= { error };
      failed.abort();
    }
  };
  await Promise.all(Array.from({ length: limit }, runNext));
  if (failure === undefined) return;
  await source.return?.();
  throw failure.error;
}

/** As `forEachLimit`, and returns the results in the order of the items. */
export async function mapLimit<Item, Result>(
  items: readonly Item[],
  limit: number,
  work: (item: Item, signal: AbortSignal) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result[]> {
  const results: Result[] = [];
  const workAt = async ([index, item]: [number, Item], either: AbortSignal) => {
    results[index] = await work(item, either);
  };
  await forEachLimit(items.entries(), Math.min(limit, items.length), workAt, signal);
  return results;
}

/** A lock within this process: waiters get it in the order in which they asked. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();
  #users = 0;

  /** Whether a caller holds the lock or waits for it. */
  get isInUse(): boolean {
    return this.#users > 0;
  }

  /** Returns the function that releases the lock; `undefined` if the signal aborts before it is free. */
  async lock(signal?: AbortSignal): Promise<(() => void) | undefined> {
    const { promise: released, resolve } = Promise.withResolvers<void>();
    const free = this.#last;
    this.#last = free.then(() => released);
    this.#users++;
    const release = () => {
      this.#users--;
      resolve();
    };
    // The caller learns of the stop by the result.
    await (signal === undefined ? free : unlessStopped(free, 0, signal).catch(() => {}));
    if (signal?.aborted !== true) return release;
    release();
    return undefined;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    const release = await this.lock();
    try {
      return await work();
    } finally {
      release?.();
    }
  }

  /** Resolves when every caller so far has released the lock. */
  async idle(): Promise<void> {
    await this.#last;
  }
}

/**
 * Places within this process, of which `limit` can be taken at once. The owner with the fewest places gets the next one, and
 * the last free place is for an owner without any. Among equals, the order of the calls counts.
 */
export class Semaphore {
  readonly #limit: () => number;
  #waiters: { readonly owner: unknown; enter(): void }[] = [];
  readonly #held = new Map<unknown, number>();
  #taken = 0;

  /** `limit` returns the limit of the moment. Call `admit` after it has grown. */
  constructor(limit: () => number) {
    this.#limit = limit;
  }

  get taken(): number {
    return this.#taken;
  }

  get hasWaiters(): boolean {
    return this.#waiters.length > 0;
  }

  /** Call `giveBack` afterwards. Rejects with the signal's reason. */
  async take(owner: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => {
      this.#waiters = this.#waiters.filter((it) => it !== waiter);
      reject(signal.reason);
    };
    const enter = () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    };
    const waiter = { owner, enter };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiters.push(waiter);
    this.admit();
    await promise;
  }

  giveBack(owner: unknown): void {
    this.#taken--;
    const left = this.#heldBy(owner) - 1;
    if (left > 0) this.#held.set(owner, left);
    else this.#held.delete(owner);
    this.admit();
  }

  admit(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const { owner } = next;
      this.#waiters.splice(this.#waiters.indexOf(next), 1);
      this.#taken++;
      this.#held.set(owner, this.#heldBy(owner) + 1);
      next.enter();
    }
  }

  /** The waiter that may enter now, if there is one. */
  #next() {
    const limit = this.#limit();
    const free = limit - this.#taken;
    let [best] = this.#waiters;
    if (free <= 0 || best === undefined) return undefined;
    for (const waiter of this.#waiters) {
      if (this.#heldBy(waiter.owner) < this.#heldBy(best.owner)) best = waiter;
    }
    const isLastPlace = free === 1 && limit > 1;
    return isLastPlace && this.#heldBy(best.owner) > 0 ? undefined : best;
  }

  #heldBy(owner: unknown): number {
    return this.#held.get(owner) ?? 0;
  }
}

/** One lock per key. */
export class KeyedMutex {
  readonly #mutexes = new Map<string, Mutex>();

  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const mutex = this.#mutexes.get(key) ?? new Mutex();
    this.#mutexes.set(key, mutex);
    try {
      return await mutex.run(work);
    } finally {
      if (!mutex.isInUse) this.#mutexes.delete(key);
    }
  }
}

/** Work that many callers ask for. It never runs twice at once; callers that arrive during a run share the next one. */
export class Coalesced<Result = void> {
  readonly #work: () => Promise<Result>;
  readonly #delayMs: number;
  #timer: Timer | undefined;
  #next: Promise<Result> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isRunning = false;

  /** `delayMs`: how long `schedule` waits for more callers. */
  constructor(work: () => Promise<Result>, delayMs = 0) {
    this.#work = work;
    this.#delayMs = delayMs;
  }

  get isIdle(): boolean {
    return this.#next === undefined && !this.#isRunning;
  }

  /** The result of a run that starts after this call. */
  run(): Promise<Result> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#next !== undefined) return this.#next;
    const next = this.#last.then(() => this.#runNow());
    this.#next = next;
    // The caller gets the failure.
    this.#last = next.catch(() => {});
    return next;
  }

  /** Runs after the delay. A failure is dropped: `work` must report or repeat it. */
  schedule(): void {
    // `work` has reported it, or repeats it.
    this.#timer ??= setTimeout(() => void this.run().catch(() => {}), this.#delayMs);
  }

  /** Resolves when the runs that `run` has started or queued have ended. */
  async idle(): Promise<void> {
    await this.#last;
  }

  async #runNow(): Promise<Result> {
    this.#next = undefined;
    this.#isRunning = true;
    try {
      return await this.#work();
    } finally {
      this.#isRunning = false;
    }
  }
}

/** Work under way that a caller may have to wait for. */
export class WaitGroup {
  readonly #work = new Set<Promise<unknown>>();

  get size(): number {
    return this.#work.size;
  }

  async add<Result>(work: Promise<Result>): Promise<Result> {
    this.#work.add(work);
    try {
      return await work;
    } finally {
      this.#work.delete(work);
    }
  }

  /** Resolves when everything that was under way at the call has ended. Never rejects. */
  async wait(): Promise<void> {
    await Promise.allSettled(this.#work);
  }
}

export interface PoolLimits {
  /** How many keys run at once. */
  readonly running: number;
  /** How many keys may wait for a run, and how many for a timer. Further keys are dropped. */
  readonly waiting: number;
}

/** Runs one kind of work for many keys: a few at once, and never twice at once for one key. */
export class KeyedPool {
  readonly #limits: PoolLimits;
  readonly #work: (key: string) => Promise<void>;
  readonly #stop: AbortSignal;
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #timers = new Map<string, Timer>();

  /** `work` must not throw. Nothing starts after `stop`. */
  constructor(limits: PoolLimits, work: (key: string) => Promise<void>, stop: AbortSignal) {
    this.#limits = limits;
    this.#work = work;
    this.#stop = stop;
  }

  /** A key that runs or waits already is not added again. */
  add(key: string): void {
    // Before the key may be dropped: a timer that has fired must not count as waiting.
    this.#cancelTimer(key);
    if (this.#waiting.size >= this.#limits.waiting || this.#running.has(key)) return;
    this.#waiting.add(key);
    this.#startWaiting();
  }

  addLater(key: string, afterMs: number): void {
    this.#cancelTimer(key);
    if (this.#timers.size >= this.#limits.waiting || this.#stop.aborted) return;
    // A timer may fire up to a millisecond early.
    const timer = setTimeout(() => this.add(key), Math.min(Math.max(afterMs, 0) + 1, LONGEST_TIMER_MS));
    this.#timers.set(key, timer);
  }

  /** Resolves when nothing runs, and no key waits that could start. Keys with a timer do not count. */
  async idle(): Promise<void> {
    this.#startWaiting();
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Drops waiting keys, and resolves when running work has ended. */
  close(): Promise<void> {
    this.#waiting.clear();
    for (const key of this.#timers.keys()) this.#cancelTimer(key);
    return this.idle();
  }

  #startWaiting(): void {
    for (const key of this.#waiting) {
      if (this.#running.size >= this.#limits.running || this.#stop.aborted) break;
      this.#waiting.delete(key);
      const run = this.#work(key).finally(() => {
        this.#running.delete(key);
        this.#startWaiting();
      });
      this.#running.set(key, run);
    }
  }

  #cancelTimer(key: string): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }
}
