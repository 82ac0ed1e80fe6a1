/**
 * A queue of download jobs for each service. The queues of services that this process does not know belong to other
 * processes, and stay: an empty one costs a few keys.
 */
import { createHash } from "node:crypto";
import { Queue, type QueueOptions } from "bullmq";
import type { Services } from "../model/job.ts";

export class ServiceQueues<Data> {
  readonly #options: QueueOptions;
  readonly #services: Services;
  readonly #queues = new Map<string, Queue<Data>>();

  constructor(options: QueueOptions, services: Services) {
    this.#options = options;
    this.#services = services;
  }

  all(): Queue<Data>[] {
    return [...this.#queues.values()];
  }

  /** `undefined` for a mailbox that is not configured. */
  of(mailbox: string): Queue<Data> | undefined {
    const service = this.#services().get(mailbox);
    return service === undefined ? undefined : this.#queues.get(downloadQueueOf(service));
  }

  /** Opens those that are not open yet, and returns them. */
  open(): Queue<Data>[] {
    const names = [...new Set(this.#services().values())].map(downloadQueueOf);
    const missing = names.filter((name) => !this.#queues.has(name));
    const opened = missing.map((name) => openQueue<Data>(name, this.#options));
    for (const queue of opened) this.#queues.set(queue.name, queue);
    return opened;
  }
}

/** Ends a pause that a person or a tool has left behind, for all processes. */
export function openQueue<Data>(name: string, options: QueueOptions): Queue<Data> {
  const queue = new Queue<Data>(name, options);
  queue.on("error", () => {});
  // The next start tries again what fails.
  queue.resume().catch(() => {});
  return queue;
}

/** The same name in every process. */
export function downloadQueueOf(service: string): string {
  return `download-${createHash("sha256").update(service).digest("hex").slice(0, 16)}`;
}
