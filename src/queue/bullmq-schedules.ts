/**
 * Polls through BullMQ's job schedulers: one per mailbox in the whole fleet, whichever processes run. Each has a fixed offset
 * within its interval, so that thousands of mailboxes do not ask the service all at once. A hash in Redis says until when a
 * mailbox is not polled because a poll failed, for all processes.
 */
import { createHash } from "node:crypto";
import type { Queue } from "bullmq";
import { Coalesced, forEachLimit } from "../base/concurrency.ts";
import type { PollSchedule } from "../model/job.ts";
import { Claims } from "./bullmq-claims.ts";
import type { RedisClient } from "./bullmq-connection.ts";

/** Schedulers that are written at once. */
const AT_ONCE = 100;
const LEAST_OFFSET = 0.1;
/** How often Redis is checked for them: it may have been flushed, or lost them in a restart. */
const CHECK_EVERY_MS = 10_000;

export class Schedules {
  readonly #queue: Queue;
  readonly #client: RedisClient;
  readonly #claims: Claims;
  readonly #putOff: string;
  readonly #checkEveryMs: number;
  /** By id. */
  #wanted: ReadonlyMap<string, PollSchedule> = new Map();
  /** Redis has what is wanted, with its intervals, as far as we know. */
  #isWritten = true;
  /** One write after the other: the schedules wanted before must not be written after those wanted now. */
  readonly #writing = new Coalesced(() => this.#write());
  #timer: NodeJS.Timeout | undefined;

  constructor(queue: Queue, client: RedisClient, checkEveryMs: number = CHECK_EVERY_MS) {
    this.#queue = queue;
    this.#client = client;
    this.#claims = new Claims(client, queue.toKey("claims"));
    this.#putOff = queue.toKey("put-off");
    this.#checkEveryMs = checkEveryMs;
  }

  async isPutOff(mailbox: string): Promise<boolean> {
    return isFuture(await this.#client.hget(this.#putOff, idOf(mailbox)));
  }

  /** No process polls the mailbox for so long; 0: no longer put off. */
  async putOff(mailbox: string, waitMs: number): Promise<void> {
    const id = idOf(mailbox);
    if (waitMs > 0) await this.#client.hset(this.#putOff, id, Date.now() + waitMs);
    else await this.#client.hdel(this.#putOff, id);
  }

  /** Where Redis refuses it, it is tried again until it does not. */
  async set(polls: readonly PollSchedule[]): Promise<void> {
    this.#wanted = new Map(polls.map((poll) => [idOf(poll.mailbox), poll]));
    this.#isWritten = false;
    this.#timer ??= setInterval(() => this.#check(), this.#checkEveryMs);
    // Before anything is polled: what fails from now on is put off anew.
    const putOff = await this.#takePutOff();
    await this.#writing.run();
    for (const mailbox of putOff) {
      await this.#queue.add("poll", { mailbox }, { jobId: `first-${idOf(mailbox)}` });
    }
  }

  /** Never rejects. Schedules stay for the next start; only our claims to them end. */
  async close(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    await this.#claims.withdraw().catch(() => {});
  }

  /** The next check tries again what fails. While Redis is away, a write waits for it. */
  #check(): void {
    if (this.#writing.isIdle) this.#writing.run().catch(() => {});
  }

  /**
   * Adds what is missing, and removes what no process claims. What is there is left alone, so that neither a start nor the
   * settings of another process disturb it; only a new interval of our own replaces the old one, once.
   */
  async #write(): Promise<void> {
    const wanted = this.#wanted;
    await this.#claims.renew(new Set(wanted.keys()));
    const known = this.#isWritten ? await this.#readIds() : await this.#readIntervals();
    const missing = [...wanted].filter(([id, { everyMs }]) => known.get(id) !== everyMs);
    await forEachLimit(missing, AT_ONCE, ([id, { mailbox, everyMs }]) => this.#upsert(id, mailbox, everyMs));
    const others = [...known.keys()].filter((id) => !wanted.has(id));
    for (const id of await this.#claims.unclaimed(others)) await this.#queue.removeJobScheduler(id);
    this.#isWritten = this.#wanted === wanted;
  }

  async #readIntervals(): Promise<ReadonlyMap<string, number>> {
    const schedulers = await this.#queue.getJobSchedulers();
    return new Map(schedulers.map(({ key, every }) => [key, Number(every)]));
  }

  /** In one command, however many there are: each one's interval is taken to be as we want it. */
  async #readIds(): Promise<ReadonlyMap<string, number | undefined>> {
    const ids = await this.#client.zrange(this.#queue.toKey("repeat"), "0", "-1");
    return new Map(ids.map((id) => [id, this.#wanted.get(id)?.everyMs]));
  }

  /** A new schedule ends all pauses of its mailboxes. Returns those that were put off. */
  async #takePutOff(): Promise<string[]> {
    const ids = [...this.#wanted.keys()];
    if (ids.length === 0) return [];
    const putOff = await this.#client.hmget(this.#putOff, ...ids);
    await this.#client.hdel(this.#putOff, ...ids);
    const polls = [...this.#wanted.values()].filter((_, at) => isFuture(putOff[at] ?? null));
    return polls.map(({ mailbox }) => mailbox);
  }

  /** Its next moment may be far away: the first poll is not left to the scheduler. */
  async #upsert(id: string, mailbox: string, everyMs: number): Promise<void> {
    const template = { name: "poll", data: { mailbox } };
    const startDate = Date.now() + offsetOf(id) * everyMs;
    await this.#queue.upsertJobScheduler(id, { every: everyMs, startDate }, template);
    await this.#queue.add("poll", { mailbox }, { jobId: `first-${id}` });
  }
}

/** Names of mailboxes may hold what ids may not. */
function idOf(mailbox: string): string {
  return createHash("sha256").update(mailbox).digest("hex").slice(0, 24);
}

/** When it is polled after the first poll, as a share of the interval: spread evenly, and not at once again. */
function offsetOf(id: string): number {
  return LEAST_OFFSET + (1 - LEAST_OFFSET) * (Number.parseInt(id.slice(0, 8), 16) / 2 ** 32);
}

function isFuture(atMs: string | null): boolean {
  return Number(atMs ?? 0) > Date.now();
}
