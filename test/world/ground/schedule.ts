/** Virtual time: events run one after the other, in the order of their times. Between two events all promises settle. */

/** A process that events belong to. */
export interface Owner {
  isDead: boolean;
  /** Its events wait until then. */
  frozenUntilMs: number;
}

export interface Planned {
  readonly atMs: number;
  readonly number: number;
  readonly owner: Owner | undefined;
  /** It waits for the end of its owner's pause. */
  readonly isLate?: boolean;
  run: (() => void) | undefined;
}

/** A world has some thousands of events. */
const MAX_STEPS = 100_000;

export class Schedule {
  nowMs: number;
  /** How many events ran. */
  steps = 0;
  #number = 0;
  readonly #heap: Planned[] = [];

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  after(ms: number, run: () => void, owner?: Owner): Planned {
    const planned: Planned = { atMs: this.nowMs + Math.max(0, ms), number: this.#number++, owner, run };
    this.#push(planned);
    return planned;
  }

  cancel(planned: Planned | undefined): void {
    if (planned !== undefined) planned.run = undefined;
  }

  /** Ends a pause before its time. */
  thaw(owner: Owner): void {
    owner.frozenUntilMs = this.nowMs;
    const late = this.#heap.filter((planned) => planned.owner === owner && planned.isLate);
    for (const planned of late.toSorted((a, b) => a.number - b.number)) {
      this.#push({ ...planned, atMs: this.nowMs, number: this.#number++ });
      planned.run = undefined;
    }
  }

  /** Runs everything that is due before `untilMs`, or until `isOver`. */
  async run(untilMs: number, isOver: () => boolean = () => false): Promise<void> {
    await settle();
    while (!isOver()) {
      const next = this.#next(untilMs);
      if (next === undefined) {
        this.nowMs = Math.max(this.nowMs, untilMs);
        return;
      }
      this.nowMs = Math.max(this.nowMs, next.atMs);
      if (this.steps++ > MAX_STEPS) throw new Error("it works without an end");
      next.run?.();
      await settle();
    }
  }

  /** Takes the next event that runs. */
  #next(untilMs: number): Planned | undefined {
    for (;;) {
      const next = this.#heap[0];
      if (next === undefined || next.atMs > untilMs) return undefined;
      this.#pop();
      const { owner, run } = next;
      if (run === undefined || owner?.isDead === true) continue;
      if (owner === undefined || owner.frozenUntilMs <= next.atMs) return next;
      this.#push({ ...next, atMs: owner.frozenUntilMs, number: this.#number++, isLate: true });
    }
  }

  #push(planned: Planned): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(planned);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(planned, heap[parent] as Planned)) break;
      heap[at] = heap[parent] as Planned;
      at = parent;
    }
    heap[at] = planned;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop() as Planned;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Planned, heap[child] as Planned)) child++;
      if (!isBefore(heap[child] as Planned, last)) break;
      heap[at] = heap[child] as Planned;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(one: Planned, other: Planned): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.number < other.number);
}

/** All promises that can settle without an event have settled. */
function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
