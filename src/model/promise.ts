/** Promises: what Inlet has undertaken to do by a time. A broken one is a trouble, whatever its cause. */
import { FAULT_CODES, type FaultCode } from "../base/fault-codes.ts";
import type { Trouble } from "./status.ts";

/** Each kind, with its name for people and the code of a broken promise. */
const PROMISES = {
  poll: ["polls", "POLL_OVERDUE"],
  download: ["downloads", "DOWNLOAD_OVERDUE"],
  delivery: ["deliveries", "DELIVERY_OVERDUE"],
  order: ["orders", "ORDER_OVERDUE"],
  handoff: ["hand-offs", "HANDOFF_OVERDUE"],
  notification: ["notifications", "NOTIFICATION_OVERDUE"],
  fleet: ["fleet", "FLEET_INCOMPLETE"],
  timers: ["process", "TIMERS_LATE"],
} as const satisfies Readonly<Record<string, readonly [string, FaultCode]>>;

export type PromiseKind = keyof typeof PROMISES;

export const PROMISE_KINDS = Object.keys(PROMISES) as PromiseKind[];

export function nameOfKind(kind: PromiseKind): string {
  return PROMISES[kind][0];
}

/** Everything is tried within this time, unless its promise says more. */
export const WITHIN_MS = 60_000;

export interface Promised {
  readonly kind: PromiseKind;
  /** Who or what it concerns, such as `mailbox box@example.com`. */
  readonly subject: string;
  readonly mailbox?: string | undefined;
  /** What has not happened, as a sentence. */
  readonly text: string;
  /** It is broken if it is still open then, on the monotonic clock: a clock that is set breaks no promise. */
  readonly dueMs: number;
  /** When the cause of a delay is over, the promise has this much time before it counts as broken. */
  readonly graceMs: number;
  /** The status has a trouble that says why. */
  readonly isExplained?: boolean;
}

export interface Broken extends Promised {
  /** When it was due, on the wall clock. */
  readonly sinceMs: number;
  readonly isExplained: boolean;
}

export function describeBroken({ kind, subject, mailbox, text, sinceMs }: Broken): Trouble {
  const mailboxes = mailbox === undefined ? {} : { mailboxes: [mailbox] };
  const [, code] = PROMISES[kind];
  const since = new Date(sinceMs).toISOString();
  return { what: subject, ...mailboxes, since, code, message: text, advice: FAULT_CODES[code].advice };
}
