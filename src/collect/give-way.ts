/**
 * A slow download gives its slot to others that wait, and goes on later where it was. Only one that can go on does so: where
 * the service sends files from their beginning only, what is slow would never be complete.
 */
import type { CollectTools } from "./tools.ts";

const SLOW_BYTES_PER_SECOND = 16 * 1024;
/** Each later run may be slow for twice as long as the one before, so that on a slow line everything is done in the end. */
const MOST_DOUBLINGS = 5;
/** What expires that soon gives way to nothing. */
const SOON_MS = 24 * 60 * 60_000;

export class Pace {
  /** The service has said that it can send the rest of a file. */
  canResume = false;
  #bytes = 0;
  #sinceMs = performance.now();

  received(bytes: number): void {
    this.#bytes += bytes;
  }

  /** `attempts`: how often the transfer was begun. */
  async isToGiveWay(
    { patience, clock, othersWait }: Pick<CollectTools, "patience" | "clock" | "othersWait">,
    attempts: number,
    expiresMs: number,
  ): Promise<boolean> {
    const nowMs = performance.now();
    const lastedMs = nowMs - this.#sinceMs;
    if (lastedMs < patience.slowMs * 2 ** Math.min(attempts - 1, MOST_DOUBLINGS)) return false;
    const isSlow = this.#bytes < (lastedMs / 1000) * SLOW_BYTES_PER_SECOND;
    this.#bytes = 0;
    this.#sinceMs = nowMs;
    return isSlow && this.canResume && expiresMs - clock.now() > SOON_MS && (await othersWait());
  }
}
