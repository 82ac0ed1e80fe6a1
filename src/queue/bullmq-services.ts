/** A queue of collect jobs for each service. Redis keeps a set of their names, so that those of removed services are cleared. */
import { createHash } from "node:crypto";
import { Queue, type QueueOptions } from "bullmq";
import type { Services } from "../model/job.ts";
import type { RedisClient } from "./bullmq-connection.ts";

export class ServiceQueues<Data> {
  readonly #client: RedisClient;
  readonly #options: QueueOptions;
  readonly #services: Services;
  readonly #queues = new Map<string, Queue<Data>>();

  constructor(client: RedisClient, options: QueueOptions, services: Services) {
    this.#client = client;
    this.#options = options;
    this.#services = services;
  }

  all(): Queue<Data>[] {
    return [...this.#queues.values()];
  }

  /** `undefined` for a mailbox that is not configured. */
  of(mailbox: string): Queue<Data> | undefined {
    const service = this.#services().get(mailbox);
    return service === undefined ? undefined : this.#queues.get(collectQueueOf(service));
  }

  /** Opens those that are not open yet, and returns them. */
  open(): Queue<Data>[] {
    const names = [...new Set(this.#services().values())].map(collectQueueOf);
    const missing = names.filter((name) => !this.#queues.has(name));
    const opened = missing.map((name) => this.#openQueue(name));
    for (const queue of opened) this.#queues.set(queue.name, queue);
    // Without its name there, a queue merely is not cleared later.
    if (missing.length > 0) this.#client.sadd(this.#names, ...missing).catch(() => {});
    return opened;
  }

  /** Removes the queues of services that are not configured. A queue with a job that runs stays until another start. */
  async removeOthers(): Promise<void> {
    const others = (await this.#client.smembers(this.#names)).filter((name) => !this.#queues.has(name));
    for (const name of others) {
      const queue = this.#openQueue(name);
      try {
        await queue.obliterate();
        await this.#client.srem(this.#names, name);
      } catch {
        // It has a job that runs, and was paused to be removed.
        await queue.resume();
      } finally {
        await queue.close();
      }
    }
  }

  get #names(): string {
    return `${this.#options.prefix}:services`;
  }

  #openQueue(name: string): Queue<Data> {
    const queue = new Queue<Data>(name, this.#options);
    queue.on("error", () => {});
    return queue;
  }
}

/** The same name in every process. */
export function collectQueueOf(service: string): string {
  return `collect-${createHash("sha256").update(service).digest("hex").slice(0, 16)}`;
}
