/** Notices: what is reported to an operator. Events and lines of the journal become changes of notices here. */

import { createHash } from "node:crypto";
import * as v from "valibot";
import { areaOf } from "../base/fault-codes.ts";
import { describeFault, type Fault } from "../base/faults.ts";
import type { DaemonEvent, Overdue } from "../model/events.ts";
import type { Delivered, HandoffStep } from "../model/handoff.ts";
import { NOTICE_KINDS, type NoticeKind } from "../model/notify.ts";
import { describeBroken } from "../model/promise.ts";
import {
  asStuck,
  hasEnded,
  isHeld,
  isUnwanted,
  RecordShape,
  shownFolder,
  type TransferKey,
  waitsForPassword,
  waitsForPerson,
} from "../model/record.ts";
import { describeRenewal, findRenewal, type Renewal } from "../model/token.ts";
import { canonicalAddress } from "../model/transfer.ts";

const Text = v.exactOptional(v.string());

export const NoticeShape = v.object({
  kind: v.picklist(NOTICE_KINDS),
  /** Identifies the notice, which is sent once while it lasts. */
  key: v.string(),
  /** The earliest time to send it, in milliseconds since the epoch. */
  atMs: v.number(),
  /** A trouble is a condition that lasts, such as a full disk. Its end is reported too. */
  isTrouble: v.exactOptional(v.boolean()),
  /** The trouble is over. */
  isOver: v.exactOptional(v.boolean()),
  mailbox: Text,
  trackingId: Text,
  sender: Text,
  /** ISO 8601. */
  expires: Text,
  /** What happened. It may quote senders and servers. */
  text: Text,
  advice: Text,
  /** The last lines that a command or check wrote. Untrusted text. */
  output: Text,
  /** The base URL of a service that fails. */
  service: Text,
  /** The mailboxes that the service fails for, or the rejected entries of a list. */
  count: v.exactOptional(v.number()),
  /** The first mailboxes that the service fails for. */
  mailboxes: v.exactOptional(v.array(v.string())),
});

export type Notice = Readonly<v.InferOutput<typeof NoticeShape>>;

/** A change of notices, as the journal stores it. */
const ChangeShape = v.variant("type", [
  /** Added unless it is known. `by`: the process that has this trouble. Each process may have it. */
  v.object({ type: v.literal("begin"), notice: NoticeShape, by: Text }),
  /** The notices are no longer true. */
  v.object({ type: v.literal("settle"), keys: v.array(v.string()) }),
  /** A trouble has ended, for the process `by`, or if no process has it. Reported only if its beginning was. */
  v.object({ type: v.literal("end"), notice: NoticeShape, by: Text }),
  /** A mailbox cannot be polled. `waitMs`: if all mailboxes can be polled again by then, it is not reported. */
  v.object({
    type: v.literal("failed"),
    mailbox: v.string(),
    service: v.string(),
    cause: v.string(),
    atMs: v.number(),
    waitMs: v.number(),
    text: v.string(),
    advice: v.string(),
  }),
  /** The mailbox was polled. */
  v.object({ type: v.literal("polled"), mailbox: v.string(), atMs: v.number() }),
]);

export type NoticeChange = Readonly<v.InferOutput<typeof ChangeShape>>;

/** A transfer, as the journal stores a change of it. */
const NotedTransferShape = v.pick(RecordShape, [
  ...(["mailbox", "trackingId", "sender", "state", "reason", "message", "output", "expires"] as const),
  ...(["needsPerson", "acknowledged"] as const),
]);
const LineShape = v.object({ ...NotedTransferShape.entries, at: v.pipe(v.string(), v.isoTimestamp()) });

type NotedTransfer = Readonly<v.InferOutput<typeof NotedTransferShape>>;

export interface EventContext {
  readonly nowMs: number;
  /** A failure of a service or a hand-off that is over within this time is not reported. */
  readonly blipMs: number;
  /** Identifies this process. */
  readonly process: string;
  /** The base URL of a mailbox's service. */
  serviceOf(mailbox: string): string | undefined;
}

const MAX_TEXT = 600;
const MAX_NAME = 254;

/** The changes of a line; none for lines about anything else. `nowMs`: the clock of its writer may be ahead. */
export function changesOfLine(line: object, nowMs: number): NoticeChange[] {
  if ("notice" in line) return v.is(ChangeShape, line.notice) ? [line.notice] : [];
  return v.is(LineShape, line) ? changesOfRecord(line, Math.min(Date.parse(line.at), nowMs)) : [];
}

export function changesOfRecord(record: NotedTransfer, atMs: number): NoticeChange[] {
  const { state, acknowledged } = record;
  if (waitsForPerson(record)) {
    const kind = waitsForPassword(record) ? "password" : isHeld(record) ? "held" : "refused";
    return [begin(ofTransfer(kind, record, atMs))];
  }
  if (state === "downloading") return [settle(keyOf("quarantined", record))];
  if (state === "quarantined") {
    return [settle(...openKeys(record)), begin(ofTransfer("quarantined", record, atMs))];
  }
  if (state === "gone") {
    const past = settle(...openKeys(record), keyOf("quarantined", record));
    if (acknowledged) return [past, settle(keyOf("gone", record))];
    return isUnwanted(record) ? [past] : [past, begin(ofTransfer("gone", record, atMs))];
  }
  if (state !== "delivered") return [];
  return [
    settle(...openKeys(record), keyOf("quarantined", record), keyOf("gone", record)),
    { type: "end", notice: overOf("disk", atMs) },
  ];
}

/** The changes of an event, except those that the ledger adds to the journal as changes of a transfer. */
export function changesOfEvent(event: DaemonEvent, context: EventContext): NoticeChange[] {
  const changes = OF_EVENTS[event.type] as
    | ((event: DaemonEvent, context: EventContext) => NoticeChange[])
    | undefined;
  return changes?.(event, context) ?? [];
}

const OF_EVENTS: {
  readonly [Type in DaemonEvent["type"]]?: (
    event: Extract<DaemonEvent, { readonly type: Type }>,
    context: EventContext,
  ) => NoticeChange[];
} = {
  /** A decided delivery that cannot be placed: the journal says only that its round has ended. */
  "transfer-stuck": ({ record, fault }, { nowMs }) =>
    hasEnded(record)
      ? [begin(ofTransfer("refused", asStuck(record, describeFault(fault), fault.code), nowMs))]
      : [],
  "transfer-expiring": ({ record }, { nowMs }) => [begin(ofTransfer("expiring", record, nowMs))],
  "entries-rejected": ({ mailbox, entries, reasons: [first] }, { nowMs }) => {
    const key = entriesKey(mailbox);
    if (first === undefined) return [settle(key)];
    const facts = { mailbox: cut(mailbox, MAX_NAME), ...textsOf(first), count: entries };
    return [begin({ kind: "refused", key, atMs: nowMs, ...facts })];
  },
  "poll-failed": ({ mailbox, fault }, { nowMs, blipMs, serviceOf }) => {
    const service = serviceOf(mailbox);
    // A full disk and the queue are troubles of their own.
    if (service === undefined || fault.code === "DISK_FULL" || areaOf(fault.code) === "queue") return [];
    const isBrief = fault.verdict === "retry";
    const [cause, waitMs] = isBrief ? ["outage", blipMs] : [fault.code, 0];
    return [{ type: "failed", mailbox, service, cause, atMs: nowMs, waitMs, ...textsOf(fault) }];
  },
  "poll-succeeded": ({ mailbox, unusable, token }, { nowMs }) => [
    { type: "polled", mailbox, atMs: nowMs },
    ...(unusable === 0 ? [settle(entriesKey(mailbox))] : []),
    ...remindOf(mailbox, findRenewal(token, nowMs), nowMs),
  ],
  // Emitted again and again, so that no kill loses one.
  "overdue-listed": ({ overdue }, { nowMs }) =>
    overdue.map((each) => begin({ ...ofArrival(each, nowMs), isTrouble: true })),
  "arrival-late": (overdue, { nowMs }) => [
    { type: "end", notice: { ...ofArrival(overdue, nowMs), isOver: true } },
  ],
  "handoff-failed": ({ delivered, step, fault, willRetry }, { nowMs, blipMs }) => {
    const notice = ofDelivery("handoff", delivered, willRetry ? nowMs + blipMs : nowMs);
    const { failing, givenUp } = handoffKeys(delivered, step);
    const [key, past] = willRetry ? [failing, givenUp] : [givenUp, failing];
    const { text, advice } = textsOf(fault);
    const facts = { ...notice, key, advice, ...outputOf(fault) };
    return [settle(past), begin({ ...facts, text: willRetry ? text : givenUpText(text) })];
  },
  // Repeats what may have been lost in a kill. Retries report themselves again.
  "outbox-scanned": ({ summary: { troubles } }, { nowMs }) =>
    troubles.flatMap((delivered) => {
      const givenUp = delivered.failed.filter(({ willRetry }) => !willRetry);
      const notices = givenUp.map((failed) => ({
        ...ofDelivery("handoff", delivered, nowMs),
        key: handoffKeys(delivered, failed.step).givenUp,
        text: givenUpText(failed.message),
        ...outputOf(failed),
      }));
      return [
        ...notices,
        ...(delivered.isOverdue ? [ofDelivery("not-picked-up", delivered, nowMs)] : []),
      ].map(begin);
    }),
  "handoff-succeeded": ({ delivered, step }) => {
    const { failing, givenUp } = handoffKeys(delivered, step);
    return [settle(failing, givenUp)];
  },
  "pick-up-overdue": ({ delivered }, { nowMs }) => [begin(ofDelivery("not-picked-up", delivered, nowMs))],
  "folder-picked-up": ({ delivered }) => [settle(keyOf("not-picked-up", delivered))],
  "folder-removed": ({ delivered }) => [settle(keyOf("not-picked-up", delivered))],
  "handoffs-stuck": ({ fault }, context) => [beginLocal("handoffs", fault, context)],
  "handoffs-resumed": (_, context) => [endLocal("handoffs", context)],
  "disk-failed": ({ fault }, context) => [beginLocal("disk", fault, context)],
  "disk-recovered": (_, context) => [endLocal("disk", context)],
  "queue-lost": ({ fault }, context) => [beginLocal("queue", fault, context)],
  "queue-back": (_, context) => [endLocal("queue", context)],
  "promises-changed": (event, context) => ofPromises(event, context),
  "settings-refused": ({ fault }, context) => [beginLocal("configuration", fault, context)],
  "settings-reloaded": (_, context) => [endLocal("configuration", context)],
};

/** One notice for each kind of promise, however many are broken. */
function ofPromises(
  { broken, began, kept }: Extract<DaemonEvent, { readonly type: "promises-changed" }>,
  context: EventContext,
): NoticeChange[] {
  const open = broken.filter(({ isExplained }) => !isExplained);
  const over = new Set(kept.map(({ kind }) => kind)).difference(new Set(open.map(({ kind }) => kind)));
  const begun = Map.groupBy(began, ({ kind }) => kind);
  return [
    ...[...over].map((kind) => endLocal(`stalled ${kind}`, context)),
    ...[...begun].flatMap(([kind, [first, ...others]]) => {
      if (first === undefined) return [];
      const more = others.length === 0 ? "" : ` And ${others.length} more.`;
      const { message, advice } = describeBroken(first);
      const text = cut(`${first.subject}: ${message}${more}`);
      const notice = {
        kind: "stalled" as const,
        key: `stalled ${kind}`,
        atMs: context.nowMs,
        isTrouble: true,
      };
      return [{ type: "begin" as const, notice: { ...notice, text, advice }, by: context.process }];
    }),
  ];
}

function begin(notice: Notice): NoticeChange {
  return { type: "begin", notice };
}

function settle(...keys: string[]): NoticeChange {
  return { type: "settle", keys };
}

function beginLocal(key: string, fault: Fault, { nowMs, process }: EventContext): NoticeChange {
  const notice = { kind: kindOfLocal(key), key, atMs: nowMs, isTrouble: true, ...textsOf(fault) };
  return { type: "begin", notice, by: process };
}

function endLocal(key: string, { nowMs, process }: EventContext): NoticeChange {
  return { type: "end", notice: overOf(key, nowMs), by: process };
}

/** The end of a trouble of a process, or of a service. */
export function overOf(key: string, atMs: number): Notice {
  const [kind, service] = isOfService(key) ? key.split(" ") : [kindOfLocal(key)];
  return { kind: kind as NoticeKind, key, atMs, isOver: true, ...(service === undefined ? {} : { service }) };
}

function kindOfLocal(key: string): NoticeKind {
  if (key.startsWith("stalled ")) return "stalled";
  return key === "handoffs" ? "handoff" : (key as NoticeKind);
}

/** The trouble of all mailboxes that cannot be polled for the same cause. */
export function serviceKey(service: string, cause: string): string {
  return `service ${service} ${cause}`;
}

export function isOfService(key: string): boolean {
  return key.startsWith("service ");
}

/** Notices that are true only while the transfer is open. */
function openKeys(transfer: TransferKey): string[] {
  return (["password", "refused", "held", "expiring"] as const).map((kind) => keyOf(kind, transfer));
}

/** Two keys, so that the renewal is reported once more on the last day. */
function remindOf(mailbox: string, renewal: Renewal | undefined, atMs: number): NoticeChange[] {
  const first = `verification ${mailbox}`;
  const last = `${first} last-day`;
  if (renewal === undefined) return [settle(first, last)];
  const notice = {
    kind: "verification",
    atMs,
    mailbox: cut(mailbox, MAX_NAME),
    expires: new Date(renewal.validUntilMs).toISOString(),
    text: describeRenewal(renewal),
  } as const;
  return renewal.isLastDay
    ? [settle(first), begin({ ...notice, key: last })]
    : [begin({ ...notice, key: first })];
}

function entriesKey(mailbox: string): string {
  return `entries ${mailbox}`;
}

/** Short, because many are remembered. */
function keyOf(kind: NoticeKind, { mailbox, trackingId }: TransferKey): string {
  const text = [kind, canonicalAddress(mailbox), trackingId].join("\0");
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

/** Two keys, so that a hand-off that was reported as failing is reported once more when it is given up. */
function handoffKeys(delivered: Delivered, step: HandoffStep) {
  const failing = `${keyOf("handoff", delivered)} ${step}`;
  return { failing, givenUp: `${failing} given-up` };
}

function givenUpText(message: string): string {
  return cut(`Inlet gave up, and does not try again by itself: ${message}`);
}

function ofTransfer(kind: NoticeKind, transfer: NotedTransfer, atMs: number): Notice {
  const { expires, message } = transfer;
  return {
    ...factsOf(kind, transfer, atMs),
    ...(expires === undefined || kind === "gone" ? {} : { expires }),
    ...(message === undefined ? {} : { text: cut(message) }),
    ...outputOf(transfer),
  };
}

function ofDelivery(kind: NoticeKind, delivered: Delivered, atMs: number): Notice {
  const text = cut(`Its folder ${shownFolder(delivered)} was delivered at ${delivered.deliveredAt}.`);
  return { ...factsOf(kind, delivered, atMs), text };
}

function factsOf(
  kind: NoticeKind,
  transfer: TransferKey & { readonly sender: string },
  atMs: number,
): Notice {
  const { mailbox, trackingId, sender } = transfer;
  return {
    kind,
    key: keyOf(kind, transfer),
    atMs,
    mailbox: cut(mailbox, MAX_NAME),
    trackingId: cut(trackingId, MAX_NAME),
    sender: cut(sender, MAX_NAME),
  };
}

function ofArrival({ mailbox, expectation: { described }, dueMs }: Overdue, atMs: number): Notice {
  const key = `overdue ${dueMs} ${keyOf("overdue", { mailbox, trackingId: described })}`;
  const text = cut(`Expected: ${described}, by ${new Date(dueMs).toISOString()}.`);
  return { kind: "overdue", key, atMs, mailbox: cut(mailbox, MAX_NAME), text };
}

function textsOf({ message, advice }: Fault): { readonly text: string; readonly advice: string } {
  return { text: cut(message), advice };
}

/** The end of an output says most. */
function outputOf({ output = "" }: { readonly output?: string | undefined }): Pick<Notice, "output"> {
  return output === "" ? {} : { output: output.slice(-MAX_TEXT).toWellFormed() };
}

/** Texts from senders can be very long. */
function cut(text: string, maxLength = MAX_TEXT): string {
  return text.length <= maxLength ? text.toWellFormed() : `${text.slice(0, maxLength).toWellFormed()}…`;
}
