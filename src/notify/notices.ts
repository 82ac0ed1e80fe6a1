/** Notices: what is reported to an operator, and the events that begin and end them. */
import { createHash } from "node:crypto";
import * as v from "valibot";
import type { Fault } from "../base/faults.ts";
import { type DaemonEvent, listenTo } from "../model/events.ts";
import type { Delivered, HandoffStep } from "../model/handoff.ts";
import { NOTICE_KINDS, type NoticeKind } from "../model/notify.ts";
import { isHeld, isUnwanted, shownFolder, type TransferKey, type TransferRecord } from "../model/record.ts";

export const NoticeShape = v.object({
  kind: v.picklist(NOTICE_KINDS),
  /** Identifies the notice, which is sent once while it lasts. */
  key: v.string(),
  /** The earliest time to send it, in milliseconds since the epoch. */
  atMs: v.number(),
  /** A trouble is a condition that lasts, such as a full disk. Its end is reported too. */
  isTrouble: v.exactOptional(v.boolean()),
  /** Each process may have this trouble. It lasts until no process has it. */
  isLocal: v.exactOptional(v.boolean()),
  /** The trouble is over. */
  isOver: v.exactOptional(v.boolean()),
  mailbox: v.exactOptional(v.string()),
  trackingId: v.exactOptional(v.string()),
  sender: v.exactOptional(v.string()),
  /** ISO 8601. */
  expires: v.exactOptional(v.string()),
  /** What happened. It may quote senders and servers. */
  text: v.exactOptional(v.string()),
  advice: v.exactOptional(v.string()),
  /** The base URL of a service that fails. */
  service: v.exactOptional(v.string()),
  /** The mailboxes that the service fails for, or the rejected entries of a list. */
  count: v.exactOptional(v.number()),
  /** The first mailboxes that the service fails for. */
  mailboxes: v.exactOptional(v.array(v.string())),
});

export type Notice = Readonly<v.InferOutput<typeof NoticeShape>>;

/** What an event means for the notices. */
export interface NoticeChanges {
  /** Added unless it is known. */
  begin(notice: Notice): void;
  /** The notices are no longer true. */
  settle(...keys: string[]): void;
  /** A trouble has ended. Reported only if its beginning was. */
  end(over: Notice): void;
  /** The same for a trouble that earlier runs left behind, if no process has it now. */
  endEarlier(over: Notice): void;
}

const MAX_TEXT = 600;
const MAX_NAME = 254;
const LOCAL = { isTrouble: true, isLocal: true } as const;

/** `blipMs`: a failure that is over within this time is not reported. Failed polls are grouped by `ServiceTroubles`. */
export function applyEvent(event: DaemonEvent, nowMs: number, blipMs: number, changes: NoticeChanges): void {
  const beginTrouble = (kind: NoticeKind, { message, advice }: Fault) =>
    changes.begin({ ...noticeOf(kind, kind, nowMs), ...LOCAL, text: cut(message), advice });
  const endOf = (kind: NoticeKind) => ({ ...noticeOf(kind, kind, nowMs), isOver: true });
  const endTrouble = (kind: NoticeKind) => changes.end(endOf(kind));
  listenTo({
    "transfer-changed": ({ record }) => applyRecord(record, nowMs, changes),
    "transfer-lost": ({ record }) => changes.settle(...openKeys(record)),
    "transfer-acknowledged": ({ record }) => changes.settle(keyOf("gone", record)),
    "transfer-expiring": ({ record }) => changes.begin(ofTransfer("expiring", record, nowMs)),
    "entries-rejected": ({ mailbox, entries, reasons: [first] }) => {
      const key = `entries ${mailbox}`;
      if (first === undefined) return changes.settle(key);
      const text = cut(first.message);
      const facts = { mailbox: cut(mailbox, MAX_NAME), text, advice: first.advice, count: entries };
      changes.begin({ ...noticeOf("refused", key, nowMs), ...facts });
    },
    "poll-succeeded": ({ mailbox, unusable }) => {
      if (unusable === 0) changes.settle(`entries ${mailbox}`);
    },
    "arrival-missed": ({ mailbox, expectation: { described }, dueMs }) =>
      changes.begin({ ...ofArrival(mailbox, described, dueMs, nowMs), isTrouble: true }),
    "arrival-late": ({ mailbox, expectation: { described }, dueMs }) =>
      changes.end({ ...ofArrival(mailbox, described, dueMs, nowMs), isOver: true }),
    "handoff-failed": ({ delivered, step, fault: { message, advice }, willRetry }) => {
      const notice = ofDelivery("handoff", delivered, willRetry ? nowMs + blipMs : nowMs);
      const { failing, givenUp } = handoffKeys(delivered, step);
      const [key, past] = willRetry ? [failing, givenUp] : [givenUp, failing];
      const text = cut(willRetry ? message : `Inlet gave up, and does not try again by itself: ${message}`);
      changes.settle(past);
      changes.begin({ ...notice, key, text, advice });
    },
    "handoff-succeeded": ({ delivered, step }) => {
      const { failing, givenUp } = handoffKeys(delivered, step);
      changes.settle(failing, givenUp);
    },
    "handoffs-stuck": ({ fault: { message, advice } }) =>
      changes.begin({
        ...noticeOf("handoff", "handoffs", nowMs),
        ...LOCAL,
        text: cut(message),
        advice,
      }),
    "handoffs-resumed": () => changes.end({ ...noticeOf("handoff", "handoffs", nowMs), isOver: true }),
    "pick-up-overdue": ({ delivered }) => changes.begin(ofDelivery("not-picked-up", delivered, nowMs)),
    "folder-picked-up": ({ delivered }) => changes.settle(keyOf("not-picked-up", delivered)),
    "folder-removed": ({ delivered }) => changes.settle(keyOf("not-picked-up", delivered)),
    "disk-full": ({ fault }) => beginTrouble("disk", fault),
    "disk-has-room": () => endTrouble("disk"),
    "queue-lost": ({ fault }) => beginTrouble("queue", fault),
    "queue-back": () => endTrouble("queue"),
    "settings-refused": ({ fault }) => beginTrouble("configuration", fault),
    "settings-reloaded": () => endTrouble("configuration"),
    // The configuration is valid, and the queue answers.
    ready: () => {
      changes.endEarlier(endOf("configuration"));
      changes.endEarlier(endOf("queue"));
    },
  })(event);
}

function applyRecord(record: TransferRecord, nowMs: number, changes: NoticeChanges): void {
  const { state, reason, needsPerson } = record;
  if (state === "waiting" && reason === "password") changes.begin(ofTransfer("password", record, nowMs));
  else if (isHeld(record)) changes.begin(ofTransfer("held", record, nowMs));
  else if (state === "waiting" && needsPerson === true) changes.begin(ofTransfer("refused", record, nowMs));
  else if (state === "downloading") changes.settle(keyOf("quarantined", record));
  else if (state === "quarantined") {
    changes.settle(...openKeys(record));
    changes.begin(ofTransfer("quarantined", record, nowMs));
  } else if (state === "gone") {
    changes.settle(...openKeys(record), keyOf("quarantined", record));
    if (!isUnwanted(record)) changes.begin(ofTransfer("gone", record, nowMs));
  } else if (state === "delivered") {
    changes.settle(...openKeys(record), keyOf("quarantined", record), keyOf("gone", record));
    changes.endEarlier({ ...noticeOf("disk", "disk", nowMs), isOver: true });
  }
}

/** Notices that are true only while the transfer is open. */
function openKeys(transfer: TransferKey): string[] {
  return (["password", "refused", "held", "expiring"] as const).map((kind) => keyOf(kind, transfer));
}

/** Short, because many are remembered. */
function keyOf(kind: NoticeKind, { mailbox, trackingId }: TransferKey): string {
  const text = [kind, mailbox, trackingId].join("\0");
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

/** Two keys, so that a hand-off that was reported as failing is reported once more when it is given up. */
function handoffKeys(delivered: Delivered, step: HandoffStep) {
  const failing = `${keyOf("handoff", delivered)} ${step}`;
  return { failing, givenUp: `${failing} given-up` };
}

function noticeOf(kind: NoticeKind, key: string, atMs: number): Notice {
  return { kind, key, atMs };
}

function ofTransfer(kind: NoticeKind, record: TransferRecord, atMs: number): Notice {
  const { mailbox, trackingId, sender, expires, message } = record;
  return {
    ...noticeOf(kind, keyOf(kind, record), atMs),
    mailbox: cut(mailbox, MAX_NAME),
    trackingId: cut(trackingId, MAX_NAME),
    sender: cut(sender, MAX_NAME),
    ...(expires === undefined || kind === "gone" ? {} : { expires }),
    ...(message === undefined ? {} : { text: cut(message) }),
  };
}

function ofDelivery(kind: NoticeKind, delivered: Delivered, atMs: number): Notice {
  const { mailbox, trackingId, sender, deliveredAt } = delivered;
  return {
    ...noticeOf(kind, keyOf(kind, delivered), atMs),
    mailbox: cut(mailbox, MAX_NAME),
    trackingId: cut(trackingId, MAX_NAME),
    sender: cut(sender, MAX_NAME),
    text: cut(`Its folder ${shownFolder(delivered)} was delivered at ${deliveredAt}.`),
  };
}

function ofArrival(mailbox: string, described: string, dueMs: number, atMs: number): Notice {
  const key = `overdue ${dueMs} ${keyOf("overdue", { mailbox, trackingId: described })}`;
  const text = cut(`Expected: ${described}, by ${new Date(dueMs).toISOString()}.`);
  return { ...noticeOf("overdue", key, atMs), mailbox: cut(mailbox, MAX_NAME), text };
}

/** Texts from senders can be very long. */
export function cut(text: string, maxLength = MAX_TEXT): string {
  return text.length <= maxLength ? text.toWellFormed() : `${text.slice(0, maxLength).toWellFormed()}…`;
}
