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
/** No poll is deferred for longer, and none is due later. A little more than a day, because clocks differ. */
const LONGEST_WAIT_MS = 25 * 3_600_000;
/** Redis may have refused to schedule the next poll. */
const OVERDUE_MS = 30_000;
/** A process that has not renewed its claims for this time counts as gone. */
const CLAIMS_EXPIRE_AFTER_MS = 60_000;

export interface ScheduleEvents {
  /** A check failed, and is repeated. */
  failed(error: unknown): void;
  /** A value that is not ours was removed. */
  removed(key: string): void;
}

export class Schedules {
  readonly #queue: Queue;
  readonly #client: RedisClient;
  readonly #events: ScheduleEvents;
  readonly #claims: Claims;
  readonly #deferred: string;
  readonly #checkEveryMs: number;
  /** By id. */
  #wanted: ReadonlyMap<string, PollSchedule> = new Map();
  /** Redis has all wanted schedules with their intervals, as far as we know. */
  #isWritten = true;
  /** One write after the other, so that an old set of schedules never overwrites a new one. */
  readonly #writing = new Coalesced(() => this.#write());
  /** The next polls at the last check. */
  #lastNext: ReadonlyMap<string, number> = new Map();
  #timer: NodeJS.Timeout | undefined;

  constructor(queue: Queue, client: RedisClient, events: ScheduleEvents, checkEveryMs = CHECK_EVERY_MS) {
    this.#queue = queue;
    this.#client = client;
    this.#events = events;
    this.#claims = new Claims(client, queue.toKey("claims"));
    this.#deferred = queue.toKey("deferred");
    this.#checkEveryMs = checkEveryMs;
  }

  async isDeferred(mailbox: string, service: string): Promise<boolean> {
    const ids = [idOf(mailbox), serviceIdOf(service)];
    const untils = await this.#client.hmget(this.#deferred, ...ids);
    const odd = ids.filter((_, at) => isOdd(untils[at] ?? null));
    if (odd.length > 0) {
      await this.#client.hdel(this.#deferred, ...odd);
      this.#events.removed(this.#deferred);
    }
    return untils.some(isFuture);
  }

  /** Call it for a job that is not one of the wanted polls: the next check reads all schedules again. */
  distrust(): void {
    this.#isWritten = false;
  }

  /** Whether the poll belongs to the schedule that added it. */
  isOwn(mailbox: string, scheduleId: string | undefined): boolean {
    return scheduleId === undefined || scheduleId === idOf(mailbox);
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
    for (const mailbox of deferred) await this.#pollNow(idOf(mailbox), mailbox);
  }

  /** Never rejects. Schedules stay for the next start; only this process's claims end. */
  async close(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    // A claim that is not renewed ends by itself.
    await this.#claims.withdraw().catch(() => {});
  }

  /** While Redis is away, a write waits for it. The next check retries a failed one. */
  #check(): void {
    if (this.#writing.isIdle) this.#writing.run().catch((error: unknown) => this.#events.failed(error));
  }

  /**
   * Adds missing schedules, and removes those that no process claims. Existing ones stay, so that neither a start nor the
   * settings of another process disturb them; only a new interval of our own, or a broken schedule, is written anew.
   */
  async #write(): Promise<void> {
    const wanted = this.#wanted;
    await this.#claims.renew(wanted.keys());
    const next = await this.#readNext();
    const known = this.#isWritten ? undefined : await this.#readIntervals([...next.keys()]);
    const broken = await this.#findBroken(next);
    await forEachLimit(broken, WRITES_AT_ONCE, ([id, dueMs]) => this.#remove(id, dueMs));
    const missing = [...wanted].filter(
      ([id, { everyMs }]) =>
        !next.has(id) || broken.has(id) || (known !== undefined && known.get(id) !== everyMs),
    );
    await forEachLimit(missing, WRITES_AT_ONCE, ([id, { mailbox, everyMs }]) =>
      this.#upsert(id, mailbox, everyMs),
    );
    const others = [...next.keys()].filter((id) => !wanted.has(id));
    for (const id of await this.#claims.unclaimed(others)) await this.#queue.removeJobScheduler(id);
    this.#isWritten = this.#wanted === wanted;
  }

  /** The time of each schedule's next poll, in one command, whatever the number. */
  async #readNext(): Promise<ReadonlyMap<string, number>> {
    const entries = await this.#client.zrange(this.#queue.toKey("repeat"), "0", "-1", "WITHSCORES");
    return new Map(groupsOf(entries, 2).map(([id = "", dueMs]) => [id, Number(dueMs)]));
  }

  /**
   * Wanted schedules whose next poll is too far away, or is overdue since the last check although no poll waits for a
   * worker.
   */
  async #findBroken(next: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>> {
    const isIdle = (await this.#client.llen(this.#queue.toKey("wait"))) === 0;
    const nowMs = Date.now();
    const isBroken = ([id, dueMs]: [string, number]) =>
      !(dueMs < nowMs + LONGEST_WAIT_MS) ||
      (isIdle && dueMs < nowMs - OVERDUE_MS && this.#lastNext.get(id) === dueMs);
    const broken = [...next].filter((entry) => this.#wanted.has(entry[0]) && isBroken(entry));
    this.#lastNext = next;
    return new Map(broken);
  }

  /** Schedules of another shape are removed, and left out. */
  async #readIntervals(ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const intervals = new Map<string, number>();
    await forEachLimit(ids, WRITES_AT_ONCE, async (id) => {
      const key = this.#queue.toKey(`repeat:${id}`);
      const type = await this.#client.type(key);
      const [every, data] = type === "hash" ? await this.#client.hmget(key, "every", "data") : [];
      const mailbox = this.#wanted.get(id)?.mailbox;
      const isSound = type === "hash" && (mailbox === undefined || data === JSON.stringify({ mailbox }));
      if (isSound) intervals.set(id, Number(every));
      else if (type !== "none") {
        await this.#client.del(key);
        this.#events.removed(key);
      }
    });
    return intervals;
  }

  /** Also its polls, which may be in no list. BullMQ would fail on a schedule of another shape. */
  async #remove(id: string, dueMs: number): Promise<void> {
    const key = (name: string) => this.#queue.toKey(name);
    const job = `repeat:${id}:${dueMs}`;
    await this.#client.zrem(key("repeat"), id);
    await this.#client.zrem(key("delayed"), job);
    await this.#client.del(key(`repeat:${id}`), key(job), key(`first-${id}`));
    if (dueMs > Date.now()) this.#events.removed(key(`repeat:${id}`));
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
    await this.#pollNow(id, mailbox);
  }

  async #pollNow(id: string, mailbox: string): Promise<void> {
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
  return !isOdd(atMs) && Number(atMs) > Date.now();
}

function isOdd(atMs: string | null): boolean {
  return atMs !== null && !(Number(atMs) < Date.now() + LONGEST_WAIT_MS);
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

  /** `key`: the key of the set of processes, and the prefix of the other keys. */
  constructor(client: RedisClient, key: string) {
    this.#client = client;
    this.#processes = key;
  }

  /** This process claims these ids and no others. Call it again before the claims expire. */
  async renew(ids: Iterable<string>): Promise<void> {
    const key = this.#keyOf(this.#own);
    // Atomic: other processes must not see a part, and ids without an expiry would outlive a crash.
    const commands = this.#client.multi().del(key);
    for (const group of groupsOf([...ids], ID_GROUP)) commands.sadd(key, ...group);
    await commands.pexpire(key, CLAIMS_EXPIRE_AFTER_MS).exec();
    await this.#client.sadd(this.#processes, this.#own);
  }

  /** The ids that no other process claims. */
  async unclaimed(ids: readonly string[]): Promise<string[]> {
    const free = new Set(ids);
    for (const process of await this.#client.smembers(this.#processes)) {
      if (process === this.#own) continue;
      const key = this.#keyOf(process);
      if ((await this.#client.type(key)) !== "set") {
        await this.#client.del(key);
        await this.#client.srem(this.#processes, process);
        continue;
      }
      for (const group of groupsOf([...free], ID_GROUP)) {
        const found = await this.#client.smismember(key, ...group);
        for (const [at, id] of group.entries()) if (found[at] === 1) free.delete(id);
      }
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
