/**
 * When a download runs, and when it lets others run: quiet hours, lists of files that take much memory, and slow services.
 */
import { Fault } from "../base/faults.ts";
import { monotonicMs } from "../base/timers.ts";
import { isWithin, nextChange, type Timetable } from "../base/timetable.ts";

/** From the end of quiet hours to the expiry: enough for the download, and a failure or two. */
const MIN_TIME_LEFT_MS = 6 * 60 * 60_000;

/**
 * Quiet hours: no download starts during them, unless too little time would be left before the transfer expires. Returns
 * the end of the quiet hours that put a download off; `undefined` if it may begin now.
 */
export function quietUntil(
  quiet: Timetable | undefined,
  expiresMs: number,
  nowMs: number,
): number | undefined {
  if (quiet === undefined || !isWithin(quiet, nowMs)) return undefined;
  const endMs = nextChange(quiet, nowMs) ?? Number.POSITIVE_INFINITY;
  return expiresMs < endMs + MIN_TIME_LEFT_MS ? undefined : endMs;
}

/** Shorter lists take a few mebibytes. */
export const MANY_FILES = 5_000;

/**
 * Bounds the memory for lists of files: a service can list any number, and a list stays in memory during the download.
 * So only one transfer with a long list runs per service, and the next one waits.
 */
export class LargeTransfers {
  /** The transfer with a long list, by service. */
  readonly #holders = new Map<string, string>();

  /** Throws `ONE_AT_A_TIME` if another such transfer runs. `giveBack` must follow. */
  take(service: string, key: string): void {
    const holder = this.#holders.get(service);
    if (holder !== undefined && holder !== key) throw new Fault("ONE_AT_A_TIME");
    this.#holders.set(service, key);
  }

  giveBack(service: string, key: string): void {
    if (this.#holders.get(service) === key) this.#holders.delete(service);
  }
}

const SLOW_BYTES_PER_SECOND = 16 * 1024;
/** Each further attempt may be slow for twice as long, so that a slow line finishes every transfer in the end. */
const MAX_DOUBLINGS = 5;

/**
 * A slow download gives its slot to waiting ones, and resumes later. This needs a service that can resume a file: otherwise a
 * slow file would never be complete. Only the time in which bytes are awaited counts, not hashing and syncing.
 */
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
   * Judges the time since the last judgement, once it is long enough. Returns whether it was slow, and the service can resume
   * a file. `attempts`: downloads started in this round.
   */
  judgePeriod(slowMs: number, attempts: number): boolean {
    this.#count();
    const lastedMs = this.#awaitedMs;
    if (lastedMs < slowMs * 2 ** Math.min(attempts - 1, MAX_DOUBLINGS)) return false;
    const isSlow = this.#bytes < (lastedMs / 1000) * SLOW_BYTES_PER_SECOND;
    this.#bytes = 0;
    this.#awaitedMs = 0;
    return isSlow && this.#canResume;
  }

  #count(): void {
    const nowMs = monotonicMs();
    if (this.#bodies > 0) this.#awaitedMs += nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
  }
}
