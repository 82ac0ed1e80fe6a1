/**
 * Poll schedules of a fleet: one BullMQ job scheduler per mailbox. Each has a fixed offset within its interval, so that the
 * polls of thousands of mailboxes are spread out. After a failed poll, a hash in Redis defers the mailbox for all processes.
 */
import { createHash } from "node:crypto";
import type { Queue } from "bullmq";
import { Coalesced, forEachLimit } from "../base/concurrency.ts";
import type { PollSchedule, PollWait } from "../model/job.ts";
import type { RedisClient } from "./bullmq-connection.ts";

const WRITES_AT_ONCE = 100;
const MIN_OFFSET = 0.1;
/** How often the schedulers are checked: Redis may have been flushed, or lost them in a restart. */
const CHECK_EVERY_MS = 10_000;
/** No poll is deferred for longer. A little more than a day, because clocks differ. */
const LONGEST_WAIT_MS = 25 * 3_600_000;
/** Redis may have refused to schedule the next poll. */
const OVERDUE_MS = 30_000;

export class Schedules {
  readonly #queue: Queue;
  readonly #client: RedisClient;
  readonly #onFailure: (error: unknown) => void;
  readonly #deferred: string;
  readonly #checkEveryMs: number;
  /** By id. */
  #wanted: ReadonlyMap<string, PollSchedule> = new Map();
  /** The interval of each schedule that this process has written, by id. */
  #written: ReadonlyMap<string, number> = new Map();
  /** One write after the other, so that an old set of schedules never overwrites a new one. */
  readonly #writing = new Coalesced(() => this.#write());
  #timer: NodeJS.Timeout | undefined;

  /** `onFailure`: a check has failed, and is repeated. */
  constructor(
    queue: Queue,
    client: RedisClient,
    onFailure: (error: unknown) => void,
    checkEveryMs = CHECK_EVERY_MS,
  ) {
    this.#queue = queue;
    this.#client = client;
    this.#onFailure = onFailure;
    this.#deferred = queue.toKey("deferred");
    this.#checkEveryMs = checkEveryMs;
  }

  /** Whether this process wants the mailbox to be polled. */
  has(mailbox: string): boolean {
    return this.#wanted.has(idOf(mailbox));
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

  /** From now on these polls are wanted, and no others. `write` must follow. Returns the mailboxes that were dropped. */
  want(polls: readonly PollSchedule[]): readonly string[] {
    const before = [...this.#wanted.values()];
    this.#wanted = new Map(polls.map((poll) => [idOf(poll.mailbox), poll]));
    this.#timer ??= setInterval(() => this.#check(), this.#checkEveryMs);
    return before.map(({ mailbox }) => mailbox).filter((mailbox) => !this.has(mailbox));
  }

  /** Schedules the wanted polls, and polls deferred mailboxes at once. If Redis fails, the next check tries again. */
  async write(services: readonly string[]): Promise<void> {
    // Before any poll starts: a poll that fails from now on defers its mailbox again.
    const deferred = await this.#takeDeferred(services);
    await this.#writing.run();
    for (const mailbox of deferred) await this.#pollNow(idOf(mailbox), mailbox);
  }

  /** Another process that wants the mailbox schedules it again at its next check. */
  async remove(mailbox: string): Promise<void> {
    await this.#queue.removeJobScheduler(idOf(mailbox));
  }

  /** Schedules stay for the next start. */
  close(): void {
    clearInterval(this.#timer);
  }

  /** While Redis is away, a write waits for it. The next check retries a failed one. */
  #check(): void {
    if (this.#writing.isIdle) this.#writing.run().catch(this.#onFailure);
  }

  /** BullMQ keeps the next poll of a schedule that is written again with the same interval. */
  async #write(): Promise<void> {
    const [wanted, written] = [this.#wanted, this.#written];
    const next = await this.#readNext();
    const isIdle = (await this.#client.llen(this.#queue.toKey("wait"))) === 0;
    const overdueMs = isIdle ? Date.now() - OVERDUE_MS : 0;
    const isSound = ([id, { everyMs }]: [string, PollSchedule]) =>
      written.get(id) === everyMs && (next.get(id) ?? 0) > overdueMs;
    const unsound = [...wanted].filter((entry) => !isSound(entry));
    await forEachLimit(unsound, WRITES_AT_ONCE, async ([id, { mailbox, everyMs }]) => {
      const dueMs = next.get(id) ?? 0;
      // A script that Redis refused half-way may have left the job in no list.
      if (dueMs <= overdueMs) await this.#client.del(this.#queue.toKey(`repeat:${id}:${dueMs}`));
      const startDate = Date.now() + offsetOf(id) * everyMs;
      await this.#queue.upsertJobScheduler(
        id,
        { every: everyMs, startDate },
        { name: "poll", data: { mailbox } },
      );
      // New, or Redis was flushed: the scheduler's first poll may be far away.
      if (!next.has(id) && (!written.has(id) || next.size === 0)) await this.#pollNow(id, mailbox);
    });
    const dropped = [...written.keys()].filter((id) => !wanted.has(id));
    await forEachLimit(dropped, WRITES_AT_ONCE, (id) => this.#queue.removeJobScheduler(id));
    this.#written = new Map([...wanted].map(([id, { everyMs }]) => [id, everyMs]));
  }

  /** The time of each schedule's next poll, in one command, whatever the number. */
  async #readNext(): Promise<ReadonlyMap<string, number>> {
    const entries = await this.#client.zrange(this.#queue.toKey("repeat"), "0", "-1", "WITHSCORES");
    return new Map(entries.flatMap((id, at) => (at % 2 === 0 ? [[id, Number(entries[at + 1])]] : [])));
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

/** A later time is not ours. */
function isFuture(atMs: string | null): boolean {
  const waitMs = Number(atMs) - Date.now();
  return waitMs > 0 && waitMs < LONGEST_WAIT_MS;
}
