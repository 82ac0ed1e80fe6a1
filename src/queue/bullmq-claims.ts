/**
 * Which schedules each process of a fleet wants. Configurations may differ, for example while a new one is rolled out: a
 * process removes a schedule only where no other process claims it. Claims of a process that died expire.
 */
import { randomBytes } from "node:crypto";
import type { RedisClient } from "./bullmq-connection.ts";

/** A process that has not renewed its claims for so long is taken to be gone. */
const EXPIRE_AFTER_MS = 60_000;
/** Ids are sent in groups of so many. */
const AT_ONCE = 1_000;

export class Claims {
  readonly #client: RedisClient;
  /** The names of processes; each has a set of ids of its own, which expires. */
  readonly #processes: string;
  readonly #own = randomBytes(8).toString("hex");
  #claimed: ReadonlySet<string> = new Set();

  /** `key`: what the names of its keys begin with. */
  constructor(client: RedisClient, key: string) {
    this.#client = client;
    this.#processes = key;
  }

  /** From now on this process claims these ids and no others. To be called again before the claims expire. */
  async renew(ids: ReadonlySet<string>): Promise<void> {
    const key = this.#keyOf(this.#own);
    const isKnown = (await this.#client.pexpire(key, EXPIRE_AFTER_MS)) === 1;
    const added = [...ids].filter((id) => !isKnown || !this.#claimed.has(id));
    for (const group of groupsOf(added)) {
      // In one step: without a time to expire they would outlive a crash.
      await this.#client
        .multi()
        .sadd(key, ...group)
        .pexpire(key, EXPIRE_AFTER_MS)
        .exec();
    }
    if (!isKnown) await this.#client.sadd(this.#processes, this.#own);
    const dropped = isKnown ? [...this.#claimed].filter((id) => !ids.has(id)) : [];
    for (const group of groupsOf(dropped)) await this.#client.srem(key, ...group);
    this.#claimed = new Set(ids);
  }

  /** Those of the ids that no other process claims. */
  async unclaimed(ids: readonly string[]): Promise<string[]> {
    const free = new Set(ids);
    for (const process of await this.#client.smembers(this.#processes)) {
      if (process === this.#own) continue;
      const key = this.#keyOf(process);
      for (const group of groupsOf([...free])) {
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

function groupsOf(ids: readonly string[]): string[][] {
  const groups: string[][] = [];
  for (let at = 0; at < ids.length; at += AT_ONCE) groups.push(ids.slice(at, at + AT_ONCE));
  return groups;
}
