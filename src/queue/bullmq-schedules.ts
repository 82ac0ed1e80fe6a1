/**
 * Polls through BullMQ's job schedulers: one per mailbox in the whole fleet, whoever is up. Each has a moment of its own
 * in the interval, so that thousands of mailboxes do not ask the service all at once. A hash in Redis says until when a
 * mailbox is not polled because a poll failed, for all processes.
 */
import { createHash } from "node:crypto";
import type { Queue } from "bullmq";
import type { PollSchedule } from "../model/job.ts";
import type { RedisClient } from "./bullmq-connection.ts";

/** Schedulers are written in groups of so many. */
const AT_ONCE = 100;
const LEAST_MOMENT = 0.1;
/** How often it is looked whether Redis still knows them: it may have been flushed, or lost them in a restart. */
const CHECK_EVERY_MS = 10_000;

export class Schedules {
  readonly #queue: Queue;
  readonly #client: RedisClient;
  readonly #putOff: string;
  #wanted: readonly PollSchedule[] = [];
  /** Redis knows what is wanted, as far as we know. */
  #isWritten = true;
  #writing: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(queue: Queue, client: RedisClient, prefix: string) {
    this.#queue = queue;
    this.#client = client;
    this.#putOff = `${prefix}:polls-put-off`;
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
    this.#wanted = polls;
    this.#isWritten = false;
    this.#timer ??= setInterval(() => void this.#check().catch(() => {}), CHECK_EVERY_MS);
    // Before anything is polled: what fails from now on is put off anew.
    const putOff = await this.#takePutOff();
    await this.#write();
    for (const mailbox of putOff) {
      await this.#queue.add("poll", { mailbox }, { jobId: `first-${idOf(mailbox)}` });
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    const count = await this.#queue.getJobSchedulersCount();
    if (!this.#isWritten || count !== this.#wanted.length) await this.#write();
  }

  /** One after the other: what was wanted before must not be written after what is wanted now. */
  #write(): Promise<void> {
    const written = this.#writing.then(() => this.#writeNow());
    this.#writing = written.catch(() => {});
    return written;
  }

  /** What is right already is left alone: a start does not disturb the rhythm of the others. */
  async #writeNow(): Promise<void> {
    const polls = this.#wanted;
    const known = new Map(
      (await this.#queue.getJobSchedulers()).map(({ key, every }) => [key, Number(every)]),
    );
    const wanted = new Map(polls.map((poll) => [idOf(poll.mailbox), poll]));
    const missing = [...wanted].filter(([id, { everyMs }]) => known.get(id) !== everyMs);
    for (let at = 0; at < missing.length; at += AT_ONCE) {
      const group = missing.slice(at, at + AT_ONCE);
      await Promise.all(group.map(([id, { mailbox, everyMs }]) => this.#upsert(id, mailbox, everyMs)));
    }
    for (const id of known.keys()) if (!wanted.has(id)) await this.#queue.removeJobScheduler(id);
    this.#isWritten = this.#wanted === polls;
  }

  /** A new schedule ends all pauses. Returns the mailboxes that were put off. */
  async #takePutOff(): Promise<string[]> {
    const putOff = await this.#client.hgetall(this.#putOff);
    await this.#client.del(this.#putOff);
    const names = this.#wanted.map(({ mailbox }) => mailbox);
    return names.filter((mailbox) => isFuture(putOff[idOf(mailbox)] ?? null));
  }

  /** Its moment may be far away: the first poll is not left to the scheduler. */
  async #upsert(id: string, mailbox: string, everyMs: number): Promise<void> {
    const template = { name: "poll", data: { mailbox } };
    const startDate = Date.now() + momentOf(id) * everyMs;
    await this.#queue.upsertJobScheduler(id, { every: everyMs, startDate }, template);
    await this.#queue.add("poll", { mailbox }, { jobId: `first-${id}` });
  }
}

function isFuture(atMs: string | null): boolean {
  return Number(atMs ?? 0) > Date.now();
}

/** Names of mailboxes may hold what ids may not. */
function idOf(mailbox: string): string {
  return createHash("sha256").update(mailbox).digest("hex").slice(0, 24);
}

/** When its turn comes after the first poll, as a share of the interval: spread evenly, and not at once again. */
function momentOf(id: string): number {
  return LEAST_MOMENT + (1 - LEAST_MOMENT) * (Number.parseInt(id.slice(0, 8), 16) / 2 ** 32);
}
