/**
 * A slow download gives its slot to others that wait, and goes on later where it was. Only one that can go on does so: where
 * the service sends files from their beginning only, a slow file would never be complete.
 */
import type { TransferTools } from "./tools.ts";

const SLOW_BYTES_PER_SECOND = 16 * 1024;
/** Each later run may be slow for twice as long as the one before, so that on a slow line everything is done in the end. */
const MOST_DOUBLINGS = 5;
/** A transfer that expires that soon gives way to nothing. */
const SOON_MS = 24 * 60 * 60_000;

/** Counts the time in which bytes are awaited: hashing and syncing are not slow because of the service. */
export class Pace {
  #canResume = false;
  #bytes = 0;
  #awaitedMs = 0;
  #bodies = 0;
  #sinceMs = 0;

  /** Returns what ends the wait. `canResume`: the service can send the rest of a file. */
  awaitBytes(canResume: boolean): () => void {
    this.#canResume ||= canResume;
    this.#count();
    this.#bodies++;
    return () => {
      this.#count();
      this.#bodies--;
    };
  }

  received(bytes: number): void {
    this.#bytes += bytes;
  }

  /** `attempts`: how often the transfer was begun. */
  async isToGiveWay(
    { patience, clock, othersWait }: Pick<TransferTools, "patience" | "clock" | "othersWait">,
    attempts: number,
    expiresMs: number,
  ): Promise<boolean> {
    this.#count();
    const lastedMs = this.#awaitedMs;
    if (lastedMs < patience.slowMs * 2 ** Math.min(attempts - 1, MOST_DOUBLINGS)) return false;
    const isSlow = this.#bytes < (lastedMs / 1000) * SLOW_BYTES_PER_SECOND;
    this.#bytes = 0;
    this.#awaitedMs = 0;
    return isSlow && this.#canResume && expiresMs - clock.now() > SOON_MS && (await othersWait());
  }

  #count(): void {
    const nowMs = performance.now();
    if (this.#bodies > 0) this.#awaitedMs += nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
  }
}
