/**
 * Poll schedules of a fleet: one BullMQ job scheduler per mailbox. Each has a fixed offset within its interval, so that the
 * polls of thousands of mailboxes are spread out. After a failed poll, a hash in Redis defers the mailbox for all processes.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Queue } from "bullmq";
import { Coalesced, forEachLimit } from "../base/concurrency.ts";
import type { PollSchedule, PollWait } from "../model/job.ts";
import type { RedisClient } from "./bullmq-connection.ts";

const WRITES_AT_ONCE = 100;
/** Ids in one Redis command. */
const ID_GROUP = 1_000;
const MIN_OFFSET = 0.1;
/** How often the schedulers are checked: Redis may have been flushed, or lost them in a restart. */
const CHECK_EVERY_MS = 10_000;
/** A process that has not renewed its claims for this time counts as gone. */
const CLAIMS_EXPIRE_AFTER_MS = 60_000;

export class Schedules {
  readonly #queue: Queue;
  readonly #client: RedisClient;
  readonly #claims: Claims;
  readonly #deferred: string;
  readonly #checkEveryMs: number;
  /** By id. */
  #wanted: ReadonlyMap<string, PollSchedule> = new Map();
  /** Redis has all wanted schedules with their intervals, as far as we know. */
  #isWritten = true;
  /** One write after the other, so that an old set of schedules never overwrites a new one. */
  readonly #writing = new Coalesced(() => this.#write());
  #timer: NodeJS.Timeout | undefined;

  constructor(queue: Queue, client: RedisClient, checkEveryMs: number = CHECK_EVERY_MS) {
    this.#queue = queue;
    this.#client = client;
    this.#claims = new Claims(client, queue.toKey("claims"));
    this.#deferred = queue.toKey("deferred");
    this.#checkEveryMs = checkEveryMs;
  }

  async isDeferred(mailbox: string, service: string): Promise<boolean> {
    const untils = await this.#client.hmget(this.#deferred, idOf(mailbox), serviceIdOf(service));
    return untils.some(isFuture);
  }

  /** No process polls the mailbox for `waitMs`, nor another mailbox of the service for `limitMs`. */
  async defer(mailbox: string, service: string, { waitMs, limitMs = 0 }: PollWait): Promise<void> {
    const id = idOf(mailbox);
    if (waitMs > 0) await this.#client.hset(this.#deferred, id, Date.now() + waitMs);
    else await this.#client.hdel(this.#deferred, id);
    if (limitMs > 0) await this.#client.hset(this.#deferred, serviceIdOf(service), Date.now() + limitMs);
  }

  /** Schedules these polls and no others. If Redis fails, the next check tries again. */
  async set(polls: readonly PollSchedule[], services: readonly string[]): Promise<void> {
    this.#wanted = new Map(polls.map((poll) => [idOf(poll.mailbox), poll]));
    this.#isWritten = false;
    this.#timer ??= setInterval(() => this.#check(), this.#checkEveryMs);
    // Before any poll starts: a poll that fails from now on defers its mailbox again.
    const deferred = await this.#takeDeferred(services);
    await this.#writing.run();
    for (const mailbox of deferred) {
      await this.#queue.add("poll", { mailbox }, { jobId: `first-${idOf(mailbox)}` });
    }
  }

  /** Never rejects. Schedules stay for the next start; only this process's claims end. */
  async close(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    await this.#claims.withdraw().catch(() => {});
  }

  /** While Redis is away, a write waits for it. The next check retries a failed one. */
  #check(): void {
    if (this.#writing.isIdle) this.#writing.run().catch(() => {});
  }

  /**
   * Adds missing schedules, and removes those that no process claims. Existing ones stay, so that neither a start nor the
   * settings of another process disturb them; only a new interval of our own replaces the old one, once.
   */
  async #write(): Promise<void> {
    const wanted = this.#wanted;
    await this.#claims.renew(new Set(wanted.keys()));
    const known = this.#isWritten ? await this.#readIds() : await this.#readIntervals();
    const missing = [...wanted].filter(([id, { everyMs }]) => known.get(id) !== everyMs);
    await forEachLimit(missing, WRITES_AT_ONCE, ([id, { mailbox, everyMs }]) =>
      this.#upsert(id, mailbox, everyMs),
    );
    const others = [...known.keys()].filter((id) => !wanted.has(id));
    for (const id of await this.#claims.unclaimed(others)) await this.#queue.removeJobScheduler(id);
    this.#isWritten = this.#wanted === wanted;
  }

  async #readIntervals(): Promise<ReadonlyMap<string, number>> {
    const schedulers = await this.#queue.getJobSchedulers();
    return new Map(schedulers.map(({ key, every }) => [key, Number(every)]));
  }

  /** In one command, whatever the number. Their intervals are assumed to be the wanted ones. */
  async #readIds(): Promise<ReadonlyMap<string, number | undefined>> {
    const ids = await this.#client.zrange(this.#queue.toKey("repeat"), "0", "-1");
    return new Map(ids.map((id) => [id, this.#wanted.get(id)?.everyMs]));
  }

  /** A new set of schedules ends all waits. Returns the mailboxes that were deferred. */
  async #takeDeferred(services: readonly string[]): Promise<string[]> {
    const wanted = [...this.#wanted];
    const ids = wanted.map(([id]) => id);
    if (ids.length === 0) return [];
    const deferred = await this.#client.hmget(this.#deferred, ...ids);
    await this.#client.hdel(this.#deferred, ...ids, ...services.map(serviceIdOf));
    return wanted.flatMap(([, { mailbox }], at) => (isFuture(deferred[at] ?? null) ? [mailbox] : []));
  }

  /** The scheduler's first poll may be far away: add one now. */
  async #upsert(id: string, mailbox: string, everyMs: number): Promise<void> {
    const template = { name: "poll", data: { mailbox } };
    const startDate = Date.now() + offsetOf(id) * everyMs;
    await this.#queue.upsertJobScheduler(id, { every: everyMs, startDate }, template);
    await this.#queue.add("poll", { mailbox }, { jobId: `first-${id}` });
  }
}

/** Names of mailboxes may hold characters that job ids may not. */
function idOf(mailbox: string): string {
  return createHash("sha256").update(mailbox).digest("hex").slice(0, 24);
}

function serviceIdOf(service: string): string {
  return `service-${idOf(service)}`;
}

/** The time from the first poll to the second as a share of the interval: spread evenly, but never at once. */
function offsetOf(id: string): number {
  return MIN_OFFSET + (1 - MIN_OFFSET) * (Number.parseInt(id.slice(0, 8), 16) / 2 ** 32);
}

function isFuture(atMs: string | null): boolean {
  return Number(atMs ?? 0) > Date.now();
}

/**
 * The schedules that each process of a fleet wants. Configurations may differ, for example during a roll-out: a process
 * removes only schedules that no other process claims. Claims of a process that died expire.
 */
class Claims {
  readonly #client: RedisClient;
  /** Key of the set of processes. Each process has a set of ids, which expires. */
  readonly #processes: string;
  readonly #own = randomBytes(8).toString("hex");
  #claimed: ReadonlySet<string> = new Set();

  /** `key`: the key of the set of processes, and the prefix of the other keys. */
  constructor(client: RedisClient, key: string) {
    this.#client = client;
    this.#processes = key;
  }

  /** This process claims these ids and no others. Call it again before the claims expire. */
  async renew(ids: ReadonlySet<string>): Promise<void> {
    const key = this.#keyOf(this.#own);
    const isKnown = (await this.#client.pexpire(key, CLAIMS_EXPIRE_AFTER_MS)) === 1;
    const added = [...ids].filter((id) => !isKnown || !this.#claimed.has(id));
    for (const group of groupsOf(added, ID_GROUP)) {
      // Atomic: ids without an expiry would outlive a crash.
      await this.#client
        .multi()
        .sadd(key, ...group)
        .pexpire(key, CLAIMS_EXPIRE_AFTER_MS)
        .exec();
    }
    if (!isKnown) await this.#client.sadd(this.#processes, this.#own);
    const dropped = isKnown ? [...this.#claimed].filter((id) => !ids.has(id)) : [];
    for (const group of groupsOf(dropped, ID_GROUP)) await this.#client.srem(key, ...group);
    this.#claimed = new Set(ids);
  }

  /** The ids that no other process claims. */
  async unclaimed(ids: readonly string[]): Promise<string[]> {
    const free = new Set(ids);
    for (const process of await this.#client.smembers(this.#processes)) {
      if (process === this.#own) continue;
      const key = this.#keyOf(process);
      for (const group of groupsOf([...free], ID_GROUP)) {
        const found = await this.#client.smismember(key, ...group);
        for (const [at, id] of group.entries()) if (found[at] === 1) free.delete(id);
      }
      if ((await this.#client.exists(key)) === 0) await this.#client.srem(this.#processes, process);
    }
    return [...free];
  }

  async withdraw(): Promise<void> {
    await this.#client.del(this.#keyOf(this.#own));
    await this.#client.srem(this.#processes, this.#own);
  }

  #keyOf(process: string): string {
    return `${this.#processes}:${process}`;
  }
}

function groupsOf<Item>(items: readonly Item[], size: number): Item[][] {
  const groups: Item[][] = [];
  for (let at = 0; at < items.length; at += size) groups.push(items.slice(at, at + size));
  return groups;
}
