/** A queue of download jobs for each service. Other processes may use queues of services that this process does not know. */
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

  /** `undefined` if the mailbox is not configured. */
  of(mailbox: string): Queue<Data> | undefined {
    const service = this.#services().get(mailbox);
    return service === undefined ? undefined : this.ofService(service);
  }

  ofService(service: string): Queue<Data> | undefined {
    return this.#queues.get(downloadQueueOf(service));
  }

  /** Opens the queues of new services, and returns them. */
  open(): Queue<Data>[] {
    const names = [...new Set(this.#services().values())].map(downloadQueueOf);
    const missing = names.filter((name) => !this.#queues.has(name));
    const opened = missing.map((name) => openQueue<Data>(name, this.#options));
    for (const queue of opened) this.#queues.set(queue.name, queue);
    return opened;
  }
}

/** Opens a queue, and resumes it in case a person or a tool has paused it. */
export function openQueue<Data>(name: string, options: QueueOptions): Queue<Data> {
  const queue = new Queue<Data>(name, options);
  queue.on("error", () => {});
  // If this fails, the next start tries again.
  queue.resume().catch(() => {});
  return queue;
}

/** The same name in every process. */
export function downloadQueueOf(service: string): string {
  return `download-${createHash("sha256").update(service).digest("hex").slice(0, 16)}`;
}
