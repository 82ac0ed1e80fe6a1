/**
 * A slow download gives its slot to waiting ones, and resumes later. This needs a service that can resume a file:
 * otherwise a slow file would never be complete.
 */
import { monotonicMs } from "../base/timers.ts";
import type { TransferTools } from "./tools.ts";

const SLOW_BYTES_PER_SECOND = 16 * 1024;
/** Each further attempt may be slow for twice as long, so that a slow line finishes every transfer in the end. */
const MAX_DOUBLINGS = 5;
/** A transfer that expires within this time does not give way. */
const SOON_MS = 24 * 60 * 60_000;

/** Measures the speed of the service: only the time in which bytes are awaited counts, not hashing and syncing. */
export class Pace {
  #canResume = false;
  #bytes = 0;
  #awaitedMs = 0;
  #bodies = 0;
  #sinceMs = 0;

  /** Returns the function that ends the wait. `canResume`: the service can send the rest of a file. */
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

  /**
   * Judges the time since the last judgement, once it is long enough. Returns whether the download gives way.
   * `attempts`: downloads started in this round.
   */
  async judgePeriod(
    { patience, clock, othersWait }: Pick<TransferTools, "patience" | "clock" | "othersWait">,
    attempts: number,
    expiresMs: number,
  ): Promise<boolean> {
    this.#count();
    const lastedMs = this.#awaitedMs;
    if (lastedMs < patience.slowMs * 2 ** Math.min(attempts - 1, MAX_DOUBLINGS)) return false;
    const isSlow = this.#bytes < (lastedMs / 1000) * SLOW_BYTES_PER_SECOND;
    this.#bytes = 0;
    this.#awaitedMs = 0;
    return isSlow && this.#canResume && expiresMs - clock.now() > SOON_MS && (await othersWait());
  }

  #count(): void {
    const nowMs = monotonicMs();
    if (this.#bodies > 0) this.#awaitedMs += nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
  }
}
