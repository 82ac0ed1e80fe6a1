/** Slots for jobs, shared fairly between services, then between mailboxes. Used by both engines. */
import { monotonicMs } from "../base/timers.ts";
import type { Services } from "../model/job.ts";

/** A running job's service and mailbox. */
export interface Holder {
  readonly service: string;
  readonly mailbox: string;
}

/**
 * Each service has one slot of its own, and all services share the other `limit - 1`. A slow service may hold every shared
 * slot, but never another service's own. At most `limit - 1` jobs plus one per service run at once.
 */
export class Slots {
  readonly #limit: () => number;
  readonly #services: Services;
  readonly #byService = new Map<string, number>();
  readonly #byMailbox = new Map<string, number>();
  #held = 0;
  /** `isShared`: a service has several mailboxes. Computed again when `services` changes. */
  #sharing: { readonly services: ReadonlyMap<string, string>; readonly isShared: boolean } | undefined;

  /** `limit`: as configured now. */
  constructor(limit: () => number, services: Services) {
    this.#limit = limit;
    this.#services = services;
  }

  /** Mailboxes that are no longer configured count as one service. */
  serviceOf(mailbox: string): string {
    return this.#services().get(mailbox) ?? "";
  }

  heldByService(service: string): number {
    return this.#byService.get(service) ?? 0;
  }

  heldByMailbox(mailbox: string): number {
    return this.#byMailbox.get(mailbox) ?? 0;
  }

  /** The last shared slot is reserved for a mailbox that holds none. `alsoHeld`: slots that the mailbox holds elsewhere. */
  isFreeFor({ service, mailbox }: Holder, alsoHeld = 0): boolean {
    if (this.hasPlaceFor(service)) return true;
    if (this.#freeShared() < 1) return false;
    return this.heldByMailbox(mailbox) + alsoHeld === 0 || !this.#hasMailboxWithoutSlot();
  }

  /** Whether a slot is free for each of its mailboxes, also for those that hold some. */
  hasPlaceFor(service: string): boolean {
    return this.heldByService(service) === 0 || this.#freeShared() > 1;
  }

  /** One slot of each service that holds any is its own, and not shared. */
  #freeShared(): number {
    const heldShared = this.#held - this.#byService.size;
    return this.#limit() - 1 - heldShared;
  }

  /** Does not check `isFreeFor`. Each slot taken must be given back. */
  take(holder: Holder): void {
    this.#held++;
    this.#byService.set(holder.service, this.heldByService(holder.service) + 1);
    this.#byMailbox.set(holder.mailbox, this.heldByMailbox(holder.mailbox) + 1);
  }

  giveBack({ service, mailbox }: Holder): void {
    this.#held--;
    decrement(this.#byService, service);
    decrement(this.#byMailbox, mailbox);
  }

  /** False, too, if each service has one mailbox, which can use the service's own slot. */
  #hasMailboxWithoutSlot(): boolean {
    const services = this.#services();
    if (this.#sharing?.services !== services) {
      this.#sharing = { services, isShared: services.size > new Set(services.values()).size };
    }
    return this.#sharing.isShared && this.#byMailbox.size < services.size;
  }
}

/** The slots of downloads, and as many places for jobs that go on without a slot. Both are shared fairly. */
export class JobSlots extends Slots {
  /** The places of jobs that have given their slot back. */
  readonly #places: Slots;
  readonly #withoutSlot = new Set<Holder>();

  constructor(limit: () => number, services: Services) {
    super(limit, services);
    this.#places = new Slots(limit, services);
  }

  /** The running jobs of its service and of its mailbox, with and without a slot. */
  runningBeside({ service, mailbox }: Holder): readonly [ofService: number, ofMailbox: number] {
    return [
      this.heldByService(service) + this.#places.heldByService(service),
      this.heldByMailbox(mailbox) + this.#places.heldByMailbox(mailbox),
    ];
  }

  override isFreeFor(holder: Holder): boolean {
    return super.isFreeFor(holder, this.#places.heldByMailbox(holder.mailbox));
  }

  /** Gives the slot of a running job back, if there is a place for it. Returns whether a slot is free now. */
  free(holder: Holder): boolean {
    if (this.#withoutSlot.has(holder) || !this.#places.isFreeFor(holder)) return false;
    this.#places.take(holder);
    this.#withoutSlot.add(holder);
    super.giveBack(holder);
    return true;
  }

  /** The job has ended. */
  override giveBack(holder: Holder): void {
    if (this.#withoutSlot.delete(holder)) this.#places.giveBack(holder);
    else super.giveBack(holder);
  }
}

/** One run of a job in this process. */
export interface RunningJob extends Holder {
  readonly id: string;
  /** Aborts when another process has taken the job. */
  readonly lost: AbortController;
}

/** The delay of a job without a slot grows with the number of such jobs. */
const DEFER_MS = { min: 500, perJob: 20, max: 30_000 };
/** An idle BullMQ worker checks delayed jobs at least this often. */
const PROMOTED_WITHIN_MS = 10_000;

/** The running downloads of this process and their slots. BullMQ does not know mailboxes, so this shares slots between them. */
export class Runs {
  readonly #slots: JobSlots;
  readonly #runs = new Set<RunningJob>();
  /** By id. After this time any process may run the job. */
  readonly #deferredUntilMs = new Map<string, number>();
  /** Jobs deferred since a slot was last given back. */
  #deferred = 0;

  constructor(limit: () => number, services: Services) {
    this.#slots = new JobSlots(limit, services);
  }

  /** `undefined` if no slot is free for this mailbox. */
  begin(id: string, mailbox: string): RunningJob | undefined {
    const run = { id, mailbox, service: this.#slots.serviceOf(mailbox), lost: new AbortController() };
    if (!this.#slots.isFreeFor(run)) return undefined;
    this.#slots.take(run);
    this.#runs.add(run);
    this.#deferredUntilMs.delete(id);
    return run;
  }

  hasPlaceFor(service: string): boolean {
    return this.#slots.hasPlaceFor(service);
  }

  end(run: RunningJob): void {
    this.#runs.delete(run);
    this.#slots.giveBack(run);
    this.#deferred = 0;
  }

  /** The run goes on without its slot, if there is room. */
  freeSlot(run: RunningJob): void {
    if (this.#runs.has(run) && this.#slots.free(run)) this.#deferred = 0;
  }

  /** Another worker has taken these jobs, or will take them. */
  abort(ids: readonly string[]): void {
    for (const run of this.#runs) if (ids.includes(run.id)) run.lost.abort();
  }

  /** Returns the delay of a job without a slot, in milliseconds. */
  defer(id: string): number {
    const { min, perJob, max } = DEFER_MS;
    this.#deferred++;
    const deferMs = Math.min(min + perJob * this.#deferred, max);
    const nowMs = monotonicMs();
    for (const [other, untilMs] of this.#deferredUntilMs) {
      if (untilMs + PROMOTED_WITHIN_MS < nowMs) this.#deferredUntilMs.delete(other);
    }
    this.#deferredUntilMs.set(id, nowMs + deferMs);
    return deferMs;
  }

  /** Deferred jobs that are not queued again yet. */
  countDeferred(): number {
    const nowMs = monotonicMs();
    return [...this.#deferredUntilMs.values()].filter((untilMs) => nowMs < untilMs).length;
  }

  /** Whether a delayed job waits for a slot, and not for its next attempt. */
  isDeferred(id: string): boolean {
    const untilMs = this.#deferredUntilMs.get(id);
    return untilMs !== undefined && monotonicMs() < untilMs + PROMOTED_WITHIN_MS;
  }
}

function decrement(counts: Map<string, number>, name: string): void {
  const left = (counts.get(name) ?? 0) - 1;
  if (left > 0) counts.set(name, left);
  else counts.delete(name);
}
