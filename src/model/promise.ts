/** Promises: what Inlet has undertaken to do by a time. A broken one is a trouble, whatever its cause. */
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

const BROKEN: Readonly<Record<PromiseKind, { readonly code: string; readonly advice: string }>> = {
  poll: {
    code: "POLL_OVERDUE",
    advice: "Transfers may expire meanwhile. Read the last lines of the log, and restart the daemon.",
  },
  download: {
    code: "DOWNLOAD_OVERDUE",
    advice: "Transfers may expire meanwhile. Read the last lines of the log, and restart the daemon.",
  },
  delivery: {
    code: "DELIVERY_OVERDUE",
    advice:
      "Look at the inbox: a file of another program may have its name. The delivery is tried again every few minutes.",
  },
  order: {
    code: "ORDER_OVERDUE",
    advice: "It stays recorded, and is tried again every half minute. Read the log for what stops it.",
  },
  handoff: {
    code: "HANDOFF_OVERDUE",
    advice: "Consumers are not told of deliveries. Read the last lines of the log, and restart the daemon.",
  },
  notification: {
    code: "NOTIFICATION_OVERDUE",
    advice: "Look at the status instead. Read the last lines of the log, and restart the daemon.",
  },
  fleet: {
    code: "FLEET_INCOMPLETE",
    advice: "Start a process with that role. Each process needs the same inbox and the same queue.",
  },
  timers: {
    code: "TIMERS_LATE",
    advice: "The machine was overloaded, or the process was paused. Look at its CPU, memory and disks.",
  },
};

export function describeBroken({ kind, subject, mailbox, text, dueMs }: Broken): Trouble {
  const { code, advice } = BROKEN[kind];
  const since = new Date(dueMs).toISOString();
  const mailboxes = mailbox === undefined ? {} : { mailboxes: [mailbox] };
  return { what: subject, ...mailboxes, since, code, message: text, advice };
}
