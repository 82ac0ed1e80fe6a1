/** Notices work that hangs: it makes no progress for a long time. */
import { monotonicMs } from "../base/timers.ts";
import { listenTo } from "../model/events.ts";
import type { TransferKey } from "../model/record.ts";

/** Longer than any single step between two events: an fsync of a large file on a slow disk, hashing a terabyte. */
const MAX_SILENT_MS = 30 * 60_000;

export class Pulse {
  /** The last progress of each running piece of work, on the monotonic clock. */
  readonly #progressMs = new Map<string, number>();
  readonly listener = listenTo({
    // Infinity: never stuck. A check has a time limit of its own.
    "transfer-changed": ({ record }) =>
      this.#beat(downloadOf(record), record.state === "checking" ? Number.POSITIVE_INFINITY : monotonicMs()),
    "transfer-progressed": ({ record }) => this.#beat(downloadOf(record), monotonicMs()),
  });

  /** `name`: for people, and different for everything that runs. */
  async during<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    this.#progressMs.set(name, monotonicMs());
    try {
      return await work();
    } finally {
      this.#progressMs.delete(name);
    }
  }

  /** The name of work that hangs, or `undefined`. */
  stuck(): string | undefined {
    const nowMs = monotonicMs();
    for (const [name, ms] of this.#progressMs) if (nowMs - ms > MAX_SILENT_MS) return name;
    return undefined;
  }

  #beat(name: string, atMs: number): void {
    if (this.#progressMs.has(name)) this.#progressMs.set(name, atMs);
  }
}

/** Names the download of a transfer. */
export function downloadOf({ mailbox, trackingId }: TransferKey): string {
  return `the download of ${trackingId} for ${mailbox}`;
}
