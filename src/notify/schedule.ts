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
export function scheduleAt(nowMs: number, times: Times, sent: SentTimes) {
  const { quiet, gatherMs, everyMs, urgent } = times;
  /** Results of `quietUntil`. Timetables are slow, and many notices need the result for the same time. */
  const quietEnds = new Map<number, number | undefined>();

  /** The end of the quiet hours at this time; `undefined` outside of them. */
  const quietUntil = (ms: number) => {
    if (quiet !== undefined && !quietEnds.has(ms)) {
      quietEnds.set(ms, isWithin(quiet, ms) ? (nextChange(quiet, ms) ?? ms + DAY_MS) : undefined);
    }
    return quietEnds.get(ms);
  };

  /** When a message with this notice may follow the one sent at `lastMs`. If that is far in the future, a clock went back. */
  const earliestMs = ({ atMs }: Notice, lastMs: number) =>
    Math.max(atMs + gatherMs, lastMs > nowMs + everyMs ? nowMs : lastMs + everyMs);

  const digestMs = (notice: Notice) => {
    const ms = earliestMs(notice, sent.lastSentMs);
    return quietUntil(Math.max(ms, nowMs)) ?? ms;
  };

  /** Urgent notices wait neither for digests nor for quiet hours: their kind is urgent, or their transfer expires first. */
  const isUrgent = (notice: Notice): boolean => {
    if (notice.isOver) return false;
    if (urgent.includes(notice.kind)) return true;
    const expiresMs = Date.parse(notice.expires ?? "");
    return expiresMs > nowMs && expiresMs <= digestMs(notice);
  };

  return {
    isUrgent,
    /** Whether a message that is sent now may contain it. */
    isAllowed: (notice: Notice) => quietUntil(nowMs) === undefined || isUrgent(notice),
    /** When the next message is due; `undefined` without notices. */
    dueMs(notices: Iterable<Notice>): number | undefined {
      let dueMs: number | undefined;
      for (const notice of notices) {
        const ms = isUrgent(notice) ? earliestMs(notice, sent.lastUrgentMs) : digestMs(notice);
        dueMs = Math.min(ms, dueMs ?? ms);
      }
      return dueMs;
    },
  };
}
