/** When a way may send: gathering, digests and quiet hours. Times are in milliseconds. */
import { DAY_MS, isWithin, nextChange } from "../base/timetable.ts";
import type { Notification } from "../model/notify.ts";
import type { Notice } from "./notices.ts";

/** When messages were sent. */
export interface SentTimes {
  readonly lastSentMs: number;
  /** The last message that did not wait for `every`. */
  readonly lastUrgentMs: number;
}

type Times = Pick<Notification, "quiet" | "gatherMs" | "everyMs" | "urgent">;

export const NEVER_SENT: SentTimes = { lastSentMs: 0, lastUrgentMs: 0 };

/** The end of the quiet hours that hold at this time; `undefined` outside of them. */
export function quietUntil({ quiet }: Times, ms: number): number | undefined {
  return quiet !== undefined && isWithin(quiet, ms) ? (nextChange(quiet, ms) ?? ms + DAY_MS) : undefined;
}

/** Whether the notice goes out in quiet hours. It does where its transfer expires before they end. */
export function isUrgent(times: Times, notice: Notice, quietEndMs: number | undefined): boolean {
  const { kind, isOver, expires } = notice;
  if (isOver) return false;
  if (times.urgent.includes(kind)) return true;
  return quietEndMs !== undefined && expires !== undefined && Date.parse(expires) <= quietEndMs;
}

/** When the next message is due; `undefined` without notices. */
export function dueMs(
  times: Times,
  sent: SentTimes,
  notices: Iterable<Notice>,
  nowMs: number,
): number | undefined {
  const digestMs = nextAllowed(sent.lastSentMs, times.everyMs, nowMs);
  const urgentMs = nextAllowed(sent.lastUrgentMs, times.everyMs, nowMs);
  let [usual, urgent] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const quietNow = quietUntil(times, nowMs);
  for (const notice of notices) {
    const readyMs = notice.atMs + times.gatherMs;
    usual = Math.min(usual, readyMs);
    if (isUrgent(times, notice, quietNow)) urgent = Math.min(urgent, readyMs);
  }
  if (usual === Number.POSITIVE_INFINITY) return undefined;
  const digest = Math.max(usual, digestMs);
  const due = quietUntil(times, Math.max(digest, nowMs)) ?? digest;
  return Math.min(due, Math.max(urgent, urgentMs));
}

/** When the next message may be sent. Clocks that went back must not hold messages back for long. */
export function nextAllowed(lastMs: number, everyMs: number, nowMs: number): number {
  return Math.min(lastMs, nowMs) + everyMs;
}
