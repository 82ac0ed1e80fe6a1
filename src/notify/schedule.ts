/** When a channel may send: gathering, digests and quiet hours. Times are in milliseconds. */
import { DAY_MS, isWithin, nextChange } from "../base/timetable.ts";
import type { ChannelSettings } from "../model/notify.ts";
import type { Notice } from "./notices.ts";

/** When messages were sent. */
export interface SentTimes {
  readonly lastSentMs: number;
  /** The last message with an urgent notice. */
  readonly lastUrgentMs: number;
}

export const NEVER_SENT: SentTimes = { lastSentMs: 0, lastUrgentMs: 0 };

type Times = Pick<ChannelSettings, "quiet" | "gatherMs" | "everyMs" | "urgent">;

/** The schedule of a channel at one moment. */
export class Schedule {
  readonly #times: Times;
  readonly #sent: SentTimes;
  readonly #nowMs: number;
  /** Results of `#quietUntil`. Timetables are slow, and many notices need the result for the same time. */
  readonly #quietEnds = new Map<number, number | undefined>();

  constructor(times: Times, sent: SentTimes, nowMs: number) {
    this.#times = times;
    this.#sent = sent;
    this.#nowMs = nowMs;
  }

  /** When the next message is due; `undefined` without notices. */
  dueMs(notices: Iterable<Notice>): number | undefined {
    let due: number | undefined;
    for (const notice of notices) due = Math.min(this.#dueMs(notice), due ?? Number.POSITIVE_INFINITY);
    return due;
  }

  /** Whether a message that is sent now may contain it. */
  isAllowed(notice: Notice): boolean {
    return this.#quietUntil(this.#nowMs) === undefined || this.isUrgent(notice);
  }

  /** Urgent notices wait neither for digests nor for quiet hours: their kind is urgent, or their transfer expires first. */
  isUrgent(notice: Notice): boolean {
    if (notice.isOver) return false;
    if (this.#times.urgent.includes(notice.kind)) return true;
    const expiresMs = Date.parse(notice.expires ?? "");
    return expiresMs > this.#nowMs && expiresMs <= this.#digestMs(notice);
  }

  #dueMs(notice: Notice): number {
    if (!this.isUrgent(notice)) return this.#digestMs(notice);
    return Math.max(this.#gatheredMs(notice), this.#intervalEndMs(this.#sent.lastUrgentMs));
  }

  #digestMs(notice: Notice): number {
    const ms = Math.max(this.#gatheredMs(notice), this.#intervalEndMs(this.#sent.lastSentMs));
    return this.#quietUntil(Math.max(ms, this.#nowMs)) ?? ms;
  }

  #gatheredMs({ atMs }: Notice): number {
    return atMs + this.#times.gatherMs;
  }

  /** When a message may follow the one sent at `lastMs`. A time far in the future does not count: a clock went back. */
  #intervalEndMs(lastMs: number): number {
    const { everyMs } = this.#times;
    return lastMs > this.#nowMs + everyMs ? this.#nowMs : lastMs + everyMs;
  }

  /** The end of the quiet hours at this time; `undefined` outside of them. */
  #quietUntil(ms: number): number | undefined {
    const { quiet } = this.#times;
    if (quiet === undefined) return undefined;
    if (!this.#quietEnds.has(ms)) {
      this.#quietEnds.set(ms, isWithin(quiet, ms) ? (nextChange(quiet, ms) ?? ms + DAY_MS) : undefined);
    }
    return this.#quietEnds.get(ms);
  }
}
