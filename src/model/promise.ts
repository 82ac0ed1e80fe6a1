/** Promises: what Inlet has undertaken to do by a time. A broken one is a trouble, whatever its cause. */
import { FAULT_CODES, type FaultCode } from "../base/fault-codes.ts";
import type { Trouble } from "./status.ts";

export const PROMISE_KINDS = [
  "poll",
  "download",
  "delivery",
  "order",
  "handoff",
  "notification",
  "fleet",
  "timers",
] as const;

export type PromiseKind = (typeof PROMISE_KINDS)[number];

/** For people: what each kind is about. */
export const NAMES: Readonly<Record<PromiseKind, string>> = {
  poll: "polls",
  download: "downloads",
  delivery: "deliveries",
  order: "orders",
  handoff: "hand-offs",
  notification: "notifications",
  fleet: "fleet",
  timers: "process",
};

/** Everything is tried within this time, unless its promise says more. */
export const WITHIN_MS = 60_000;

export interface Promised {
  readonly kind: PromiseKind;
  /** Who or what it concerns, such as `mailbox box@example.com`. */
  readonly subject: string;
  readonly mailbox?: string | undefined;
  /** What has not happened, as a sentence. */
  readonly text: string;
  /** It is broken if it is still open then. */
  readonly dueMs: number;
  /** After something else has stopped the work for a while, this much time is left for it. */
  readonly graceMs: number;
  /** The status has a trouble that says why. */
  readonly isExplained?: boolean;
}

export interface Broken extends Promised {
  readonly isExplained: boolean;
}

const CODES: Readonly<Record<PromiseKind, FaultCode>> = {
  poll: "POLL_OVERDUE",
  download: "DOWNLOAD_OVERDUE",
  delivery: "DELIVERY_OVERDUE",
  order: "ORDER_OVERDUE",
  handoff: "HANDOFF_OVERDUE",
  notification: "NOTIFICATION_OVERDUE",
  fleet: "FLEET_INCOMPLETE",
  timers: "TIMERS_LATE",
};

export function describeBroken({ kind, subject, mailbox, text, dueMs }: Broken): Trouble {
  const mailboxes = mailbox === undefined ? {} : { mailboxes: [mailbox] };
  const code = CODES[kind];
  const since = new Date(dueMs).toISOString();
  return { what: subject, ...mailboxes, since, code, message: text, advice: FAULT_CODES[code].advice };
}
