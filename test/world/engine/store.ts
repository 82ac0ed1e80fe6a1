/** What Redis holds in a world: the jobs of each service, limits, turns of polls and notes. Several engines share it. */
import type { Random } from "../ground/random.ts";

interface JobData {
  readonly mailbox: string;
  readonly trackingId: string;
}

export interface NewJob {
  readonly service: string;
  readonly key: string;
  readonly data: JobData;
  /** The lowest number first, then the oldest job. */
  readonly priority: number;
}

/** A job that a worker has taken. Whoever has the token may renew the lock, and say how the job ends. */
export interface Lease extends NewJob {
  readonly token: number;
}

/** Probabilities of what an engine on Redis may do to a job. */
export interface Mischief {
  /** A job that is added or delayed gets lost. */
  lose: number;
  /** The lock of a job that is handed out ends before the worker renews it, and another worker may take the job. */
  repeat: number;
  /** A job that is due is handed out late. */
  delay: number;
}

/** A process that is connected. Its methods may be called while another process runs. */
export interface Member {
  /** The service may have a job for it then. */
  wakeAt(service: string, dueMs: number): void;
  /** `isAway` has changed. */
  connectionChanged(): void;
}

type Place =
  | { readonly state: "waiting"; readonly number: number; readonly fromMs: number }
  | { readonly state: "delayed"; readonly untilMs: number }
  | {
      readonly state: "active";
      readonly token: number;
      readonly lockedUntilMs: number;
      /** Some time later a worker notices that the lock has ended. */
      readonly takenBackMs: number;
    };

/** Whose `place` changes. */
interface StoredJob extends NewJob {
  place: Place;
}

/** A job that is handed out late is so by this, more often by seconds than by minutes. */
const LATE_MS = { min: 2_000, max: 300_000 };

/** Each method is one command or script of Redis. Who calls it must check `isAway` before. */
export class SharedStore {
  readonly mischief: Mischief = { lose: 0, repeat: 0, delay: 0 };
  readonly nowMs: () => number;
  readonly #random: Random;
  /** By service, then by key. */
  readonly #jobs = new Map<string, Map<string, StoredJob>>();
  /** By service: until when none of its jobs starts. */
  readonly #limits = new Map<string, number>();
  readonly #values = new Map<string, { readonly value: string; readonly untilMs: number }>();
  readonly #members = new Set<Member>();
  #isAway = false;
  /** The last number of a waiting job or token. */
  #number = 0;

  constructor({ nowMs, random }: { readonly nowMs: () => number; readonly random: Random }) {
    this.nowMs = nowMs;
    this.#random = random;
  }

  /** No process reaches it. Its clock goes on: locks, limits and turns end. */
  get isAway(): boolean {
    return this.#isAway;
  }

  set isAway(isAway: boolean) {
    if (this.#isAway === isAway) return;
    this.#isAway = isAway;
    for (const member of this.#members) member.connectionChanged();
  }

  /** It loses everything, as with FLUSHALL. */
  wipe(): void {
    this.#jobs.clear();
    this.#limits.clear();
    this.#values.clear();
  }

  join(member: Member): void {
    this.#members.add(member);
  }

  leave(member: Member): void {
    this.#members.delete(member);
  }

  // Jobs

  stateOf(service: string, key: string): Place["state"] | "unknown" {
    return this.#jobs.get(service)?.get(key)?.place.state ?? "unknown";
  }

  /** Does nothing if there is such a job in any state. */
  add({ service, key, data, priority }: NewJob): void {
    const jobs = this.#jobs.get(service) ?? new Map<string, StoredJob>();
    this.#jobs.set(service, jobs);
    if (jobs.has(key) || this.#random.chance(this.mischief.lose)) return;
    const job = { service, key, data, priority, place: this.#waiting() };
    jobs.set(key, job);
    this.#wake(job);
  }

  /** Ends the delay of a job. */
  promote(service: string, key: string): void {
    const job = this.#jobs.get(service)?.get(key);
    if (job?.place.state === "delayed") this.#put(job, this.#waiting());
  }

  /** The next job of this service, unless the service is limited. */
  take(service: string, lockMs: number): Lease | undefined {
    if (this.limitMs(service) > 0) return undefined;
    const nowMs = this.nowMs();
    let best: StoredJob | undefined;
    for (const job of this.#jobs.get(service)?.values() ?? []) {
      if (job.place.state !== "waiting" && readyMs(job) <= nowMs) job.place = this.#waiting();
      if (readyMs(job) <= nowMs && (best === undefined || isBefore(job, best))) best = job;
    }
    if (best === undefined) return undefined;
    const token = ++this.#number;
    this.#put(best, this.#locked(token, lockMs, this.#random.chance(this.mischief.repeat)));
    const { key, data, priority } = best;
    return { service, key, data, priority, token };
  }

  /** Returns false if the lock was lost. So do the next three, which then do nothing. */
  renew(lease: Lease, lockMs: number): boolean {
    return this.#end(lease, (job) => this.#put(job, this.#locked(lease.token, lockMs, false)));
  }

  finish(lease: Lease): boolean {
    return this.#end(lease, (job) => this.#remove(job));
  }

  delay(lease: Lease, untilMs: number): boolean {
    return this.#end(lease, (job) => {
      if (this.#random.chance(this.mischief.lose)) this.#remove(job);
      else this.#put(job, { state: "delayed", untilMs });
    });
  }

  requeue(lease: Lease): boolean {
    return this.#end(lease, (job) => this.#put(job, this.#waiting()));
  }

  /** 0 ends a limit; any other time never shortens one. */
  limit(service: string, ms: number): void {
    const before = ms > 0 ? (this.#limits.get(service) ?? 0) : 0;
    this.#limits.set(service, Math.max(before, this.nowMs() + ms));
    for (const member of this.#members) member.wakeAt(service, this.nextDueMs(service));
  }

  limitMs(service: string): number {
    return Math.max(0, (this.#limits.get(service) ?? 0) - this.nowMs());
  }

  countWaiting(service: string): number {
    if (this.limitMs(service) > 0) return 0;
    const jobs = [...(this.#jobs.get(service)?.values() ?? [])];
    return jobs.filter(({ place }) => place.state === "waiting").length;
  }

  /** When `take` may return a job. Not a command: it saves engines from asking in vain. */
  nextDueMs(service: string): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const job of this.#jobs.get(service)?.values() ?? []) nextMs = Math.min(nextMs, readyMs(job));
    return Math.max(nextMs, this.#limits.get(service) ?? 0);
  }

  // Values that expire

  get(key: string): string | undefined {
    return this.ttlMs(key) > 0 ? this.#values.get(key)?.value : undefined;
  }

  set(key: string, value: string, ms: number): void {
    this.#values.set(key, { value, untilMs: this.nowMs() + ms });
  }

  /** Returns whether the key was missing. */
  setIfMissing(key: string, value: string, ms: number): boolean {
    const isMissing = this.get(key) === undefined;
    if (isMissing) this.set(key, value, ms);
    return isMissing;
  }

  /** Not above 0 for a key that is missing. */
  ttlMs(key: string): number {
    return (this.#values.get(key)?.untilMs ?? 0) - this.nowMs();
  }

  /** Returns whether there was such a key. */
  remove(key: string): boolean {
    const wasThere = this.get(key) !== undefined;
    this.#values.delete(key);
    return wasThere;
  }

  // Helpers

  #end({ service, key, token }: Lease, work: (job: StoredJob) => void): boolean {
    const job = this.#jobs.get(service)?.get(key);
    const isHeld =
      job?.place.state === "active" && job.place.token === token && job.place.lockedUntilMs > this.nowMs();
    if (isHeld) work(job);
    return isHeld;
  }

  #put(job: StoredJob, place: Place): void {
    job.place = place;
    this.#wake(job);
  }

  #remove({ service, key }: StoredJob): void {
    this.#jobs.get(service)?.delete(key);
  }

  #wake(job: StoredJob): void {
    const dueMs = Math.max(readyMs(job), this.#limits.get(job.service) ?? 0);
    for (const member of this.#members) member.wakeAt(job.service, dueMs);
  }

  #waiting(): Place {
    const nowMs = this.nowMs();
    const isLate = this.#random.chance(this.mischief.delay);
    const lateMs = LATE_MS.min * (LATE_MS.max / LATE_MS.min) ** this.#random.next();
    return { state: "waiting", number: ++this.#number, fromMs: isLate ? nowMs + lateMs : nowMs };
  }

  /** A lock that ends early ends before its first renewal, which comes after half of `lockMs`. */
  #locked(token: number, lockMs: number, endsEarly: boolean): Place {
    const lockedUntilMs = this.nowMs() + (endsEarly ? (this.#random.next() * lockMs) / 2 : lockMs);
    // Workers look for jobs whose lock has ended once per `lockMs`.
    const unnoticedMs = endsEarly ? 0 : this.#random.next() * lockMs;
    return { state: "active", token, lockedUntilMs, takenBackMs: lockedUntilMs + unnoticedMs };
  }
}

/** When a worker may get the job. */
function readyMs({ place }: StoredJob): number {
  if (place.state === "waiting") return place.fromMs;
  return place.state === "delayed" ? place.untilMs : place.takenBackMs;
}

/** Of two waiting jobs. */
function isBefore(one: StoredJob, other: StoredJob): boolean {
  if (one.priority !== other.priority) return one.priority < other.priority;
  return numberOf(one) < numberOf(other);
}

function numberOf({ place }: StoredJob): number {
  return place.state === "waiting" ? place.number : 0;
}
