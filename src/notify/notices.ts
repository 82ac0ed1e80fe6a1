/** Notices: what is reported to an operator. Events and lines of the journal become changes of notices here. */

import { hash } from "node:crypto";
import * as v from "valibot";
import { areaOf } from "../base/fault-codes.ts";
import { describeFault, Fault } from "../base/faults.ts";
import { formatCount } from "../base/phrases.ts";
import type { DaemonEvent, EventOf, Overdue } from "../model/events.ts";
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

const Text = v.optional(v.string());
const Flag = v.optional(v.boolean());

export const NoticeShape = v.object({
  kind: v.picklist(NOTICE_KINDS),
  /** Identifies the notice, which is sent once while it lasts. */
  key: v.string(),
  /** The earliest time to send it, in milliseconds since the epoch. */
  atMs: v.number(),
  /** A trouble is a condition that lasts, such as a full disk. Its end is reported too. */
  isTrouble: Flag,
  /** The trouble is over. */
  isOver: Flag,
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
});

export type Notice = Readonly<v.InferOutput<typeof NoticeShape>> & {
  /** The mailboxes that a service fails for now. */
  readonly mailboxes?: readonly string[];
};

/** A change of notices, as the journal stores it. */
const ChangeShape = v.object({
  atMs: v.number(),
  /**
   * The owner of these notices: a process or a mailbox. A notice with several owners ends when the last of them ends it.
   * Missing: the notices have no owner.
   */
  by: Text,
  /**
   * Keys of notices that are no longer true. With `by`, the first words of keys are enough. The end of a notice is not
   * reported if `begin` has one with the same first words, which replaces it.
   */
  end: v.array(v.string()),
  /** Added unless they are known. */
  begin: v.array(NoticeShape),
  /** The process that has published the change, and how many it had published then. */
  process: Text,
  seq: v.optional(v.number()),
});

export type NoticeChange = Readonly<v.InferOutput<typeof ChangeShape>>;

/** A change without its time. `end` and `begin`: empty if missing. */
type Changed = Partial<Pick<NoticeChange, "by"> & Ended & Begun>;
type Ended = Pick<NoticeChange, "end">;
type Begun = Pick<NoticeChange, "begin">;

/** A transfer, as the journal stores a change of it. */
const NotedTransferShape = v.pick(RecordShape, [
  ...(["mailbox", "trackingId", "sender", "state", "reason", "message", "output", "expires"] as const),
  ...(["needsPerson", "acknowledged", "round"] as const),
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
/** Distinguishes owners that are mailboxes from processes. */
const OF_MAILBOX = "mailbox ";

/** The change that a line of the journal stores; `undefined` if it stores none. `nowMs`: the writer's clock may be ahead. */
export function changeOfLine(line: object, nowMs: number): NoticeChange | undefined {
  if ("notice" in line) return v.is(ChangeShape, line.notice) ? line.notice : undefined;
  return v.is(LineShape, line) ? changeOfRecord(line, Math.min(Date.parse(line.at), nowMs)) : undefined;
}

export function changeOfRecord(record: NotedTransfer, atMs: number): NoticeChange {
  return { atMs, end: [], begin: [], ...changedBy(record, atMs) };
}

function changedBy(record: NotedTransfer, atMs: number): Changed {
  const { state, acknowledged, round } = record;
  const [open, gone] = [openKeys(record), keyOf("gone", record)];
  const quarantined = quarantinedKey({ ...record, round: round - 1 });
  const begin = (kind: NoticeKind) => ({ begin: [ofTransfer(kind, record, atMs)] });
  if (waitsForPassword(record)) return begin("password");
  if (waitsForPerson(record)) return begin(isHeld(record) ? "held" : "refused");
  if (state === "downloading") return { end: [quarantined] };
  if (state === "quarantined")
    return {
      end: [...open, quarantined],
      begin: [{ ...ofTransfer("quarantined", record, atMs), key: quarantinedKey(record) }],
    };
  if (state === "delivered") return { end: [...open, quarantined, gone, "disk"] };
  if (state !== "gone") return {};
  if (acknowledged) return { end: [...open, quarantined, gone] };
  return { end: [...open, quarantined], ...(isUnwanted(record) ? {} : begin("gone")) };
}

/** The changes of an event, except those that the ledger adds to the journal as changes of a transfer. */
export function changesOfEvent(event: DaemonEvent, context: EventContext): NoticeChange[] {
  const changes = OF_EVENTS[event.type] as ChangesOf<DaemonEvent> | undefined;
  const changed = [changes?.(event, context) ?? []].flat();
  return changed.map((each) => ({ atMs: context.nowMs, end: [], begin: [], ...each }));
}

type ChangesOf<Event> = (event: Event, context: EventContext) => Changed | Changed[];

const OF_EVENTS: { readonly [Type in DaemonEvent["type"]]?: ChangesOf<EventOf<Type>> } = {
  /** A decided delivery that cannot be placed: the journal says only that its round has ended. */
  "transfer-stuck": ({ record, fault }, { nowMs }) => {
    const stuck = asStuck(record, describeFault(fault), fault.code);
    return hasEnded(record) ? { begin: [ofTransfer("refused", stuck, nowMs)] } : {};
  },
  "transfer-expiring": ({ record }, { nowMs }) => ({ begin: [ofTransfer("expiring", record, nowMs)] }),
  "entries-rejected": ({ mailbox, entries, reasons: [first] }, { nowMs }) => {
    const [by, key] = [ownerOf(mailbox), entriesKey(mailbox)];
    if (first === undefined) return { by, end: [key] };
    const { message, advice } = first;
    const what = formatCount(entries, "entry of the list", "entries of the list");
    const facts = {
      mailbox: cut(mailbox, MAX_NAME),
      text: cut(`${what} cannot be used: ${message}`),
      advice,
    };
    return { by, begin: [{ kind: "refused", key, atMs: nowMs, ...facts }] };
  },
  "poll-failed": ({ mailbox, fault }, { nowMs, blipMs, serviceOf }) => {
    const service = serviceOf(mailbox);
    // A full disk and the queue are troubles of their own.
    if (service === undefined || fault.code === "DISK_FULL" || areaOf(fault.code) === "queue") return [];
    const isBrief = fault.verdict === "retry";
    const key = `service ${service} ${isBrief ? "outage" : fault.code}`;
    const facts = { key, atMs: isBrief ? nowMs + blipMs : nowMs, service, ...textsOf(fault) };
    return {
      by: ownerOf(mailbox),
      end: ["service"],
      begin: [{ kind: "service", isTrouble: true, ...facts }],
    };
  },
  "poll-succeeded": ({ mailbox, unusable, modeless = 0, doubtful = 0, token }, { nowMs, serviceOf }) => {
    const { end, begin } = remindOf(mailbox, findRenewal(token, nowMs), nowMs);
    const rejected = unusable === 0 ? [entriesKey(mailbox)] : [];
    const service = serviceOf(mailbox);
    const facts = { key: `modes ${service}`, atMs: nowMs, service, ...textsOf(new Fault("MODE_UNKNOWN")) };
    const modes: Notice[] = modeless > 0 ? [{ kind: "service", isTrouble: true, ...facts }] : [];
    const doubt = { mailbox: cut(mailbox, MAX_NAME), ...textsOf(new Fault("RECORDS_MISSING")) };
    const records: Notice[] =
      doubtful > 0 ? [{ kind: "refused", key: `records ${mailbox}`, atMs: nowMs, ...doubt }] : [];
    return {
      by: ownerOf(mailbox),
      end: ["service", "modes", "records", ...rejected, ...end],
      begin: [...begin, ...modes, ...records],
    };
  },
  // Emitted again and again, so that no kill loses one.
  "overdue-listed": ({ overdue }, { nowMs }) =>
    overdue.map((each) => ({ begin: [{ ...ofArrival(each, nowMs), isTrouble: true }] })),
  "arrival-late": (overdue, { nowMs }) => ({ end: [ofArrival(overdue, nowMs).key] }),
  "handoff-failed": ({ delivered, step, fault, willRetry }, { nowMs, blipMs }) => {
    const notice = ofDelivery("handoff", delivered, willRetry ? nowMs + blipMs : nowMs);
    const { failing, givenUp } = handoffKeys(delivered, step);
    const { text, advice } = textsOf(fault);
    const facts = { ...notice, advice, output: outputOf(fault) };
    return willRetry
      ? { end: [givenUp], begin: [{ ...facts, key: failing, text }] }
      : { end: [failing], begin: [{ ...facts, key: givenUp, text: givenUpText(text) }] };
  },
  // Repeats what may have been lost in a kill. Retries report themselves again.
  "outbox-scanned": ({ summary: { troubles } }, { nowMs }) =>
    troubles.flatMap((delivered) => {
      const givenUp = delivered.failed.filter(({ willRetry }) => !willRetry);
      const notices = givenUp.map((failed) => ({
        ...ofDelivery("handoff", delivered, nowMs),
        key: handoffKeys(delivered, failed.step).givenUp,
        text: givenUpText(failed.message),
        output: outputOf(failed),
      }));
      const overdue = delivered.isOverdue ? [ofDelivery("not-picked-up", delivered, nowMs)] : [];
      return [...notices, ...overdue].map((notice) => ({ begin: [notice] }));
    }),
  "handoff-succeeded": ({ delivered, step }) => ({ end: Object.values(handoffKeys(delivered, step)) }),
  "pick-up-overdue": ({ delivered }, { nowMs }) => ({
    begin: [ofDelivery("not-picked-up", delivered, nowMs)],
  }),
  "folder-picked-up": ({ delivered }) => ({ end: [keyOf("not-picked-up", delivered)] }),
  "folder-removed": ({ delivered }) => ({ end: [keyOf("not-picked-up", delivered)] }),
  "handoffs-stuck": ({ fault }, context) =>
    beginOwn(context, "handoff", "handoffs", {
      ...textsOf(fault),
      text: cut(`The outbox cannot be read or written: ${fault.message}`),
    }),
  "handoffs-resumed": (_, context) => endOwn(context, "handoffs"),
  "disk-failed": ({ fault }, context) => beginOwn(context, "disk", "disk", textsOf(fault)),
  "disk-recovered": (_, context) => endOwn(context, "disk"),
  "queue-lost": ({ fault }, context) => beginOwn(context, "queue", "queue", textsOf(fault)),
  "queue-back": (_, context) => endOwn(context, "queue"),
  "settings-refused": ({ fault }, context) =>
    beginOwn(context, "configuration", "configuration", textsOf(fault)),
  "settings-reloaded": (_, context) => endOwn(context, "configuration"),
  "trust-looked-at": ({ fault }, context) =>
    fault === undefined
      ? endOwn(context, "files")
      : beginOwn(context, "configuration", "files", textsOf(fault)),
  /** One notice for each kind of promise, however many are broken. */
  "promises-changed": ({ broken, began, kept }, context) => {
    const open = new Set(broken.filter(({ isExplained }) => !isExplained).map(({ kind }) => kind));
    const over = new Set(kept.map(({ kind }) => kind)).difference(open);
    const begun = [...Map.groupBy(began, ({ kind }) => kind)].flatMap(([kind, [first, ...others]]) => {
      if (first === undefined) return [];
      const { message, advice } = describeBroken(first);
      const more = others.length === 0 ? "" : ` And ${others.length} more.`;
      const texts = { text: cut(`${first.subject}: ${message}${more}`), advice };
      return beginOwn(context, "stalled", `stalled ${kind}`, texts);
    });
    return [...[...over].map((kind) => endOwn(context, `stalled ${kind}`)), ...begun];
  },
};

/** A trouble of this process. */
function beginOwn(
  { nowMs, process }: EventContext,
  kind: NoticeKind,
  key: string,
  texts: Pick<Notice, "text" | "advice">,
): Changed {
  return { by: process, begin: [{ kind, key, atMs: nowMs, isTrouble: true, ...texts }] };
}

function endOwn({ process }: EventContext, key: string): Changed {
  return { by: process, end: [key] };
}

/** The owner of a mailbox's notices. A process owns its notices under its id. */
function ownerOf(mailbox: string): string {
  return `${OF_MAILBOX}${mailbox}`;
}

/** The name of the mailbox; `undefined` if the owner is a process. */
export function mailboxIn(owner: string): string | undefined {
  return owner.startsWith(OF_MAILBOX) ? owner.slice(OF_MAILBOX.length) : undefined;
}

/** Notices that are true only while the transfer is open. */
function openKeys(transfer: TransferKey): string[] {
  return (["password", "refused", "held", "expiring"] as const).map((kind) => keyOf(kind, transfer));
}

/** Two keys, so that the renewal is reported once more on the last day. */
function remindOf(mailbox: string, renewal: Renewal | undefined, atMs: number): Ended & Begun {
  const [soon, lastDay] = [`renewal ${mailbox}`, `last-day ${mailbox}`];
  if (renewal === undefined) return { end: [soon, lastDay], begin: [] };
  const { isLastDay, validUntilMs } = renewal;
  const expires = new Date(validUntilMs).toISOString();
  const facts = { mailbox: cut(mailbox, MAX_NAME), expires, text: describeRenewal(renewal) };
  const notice = { kind: "verification", key: isLastDay ? lastDay : soon, atMs, ...facts } as const;
  return { end: isLastDay ? [soon] : [], begin: [notice] };
}

function entriesKey(mailbox: string): string {
  return `entries ${mailbox}`;
}

/** A hash: it is short, and many keys are remembered. */
function keyOf(kind: NoticeKind, { mailbox, trackingId }: TransferKey): string {
  const text = [kind, canonicalAddress(mailbox), trackingId].join("\0");
  return hash("sha256", text, "base64url").slice(0, 16);
}

/** One for each round: a process whose disk was full adds late to its journal what came before the end of a round. */
function quarantinedKey(record: TransferKey & { readonly round: number }): string {
  const key = keyOf("quarantined", record);
  return record.round === 1 ? key : `${key}-${record.round}`;
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
    expires: kind === "gone" ? undefined : expires,
    text: message && cut(message),
    output: outputOf(transfer),
  };
}

function ofDelivery(kind: NoticeKind, delivered: Delivered, atMs: number): Notice {
  const text = cut(`Its folder ${shownFolder(delivered)} was delivered at ${delivered.deliveredAt}.`);
  return { ...factsOf(kind, delivered, atMs), text };
}

function factsOf(kind: NoticeKind, transfer: NotedTransfer | Delivered, atMs: number): Notice {
  const cutName = (name: "mailbox" | "trackingId" | "sender") => cut(transfer[name], MAX_NAME);
  const names = { mailbox: cutName("mailbox"), trackingId: cutName("trackingId"), sender: cutName("sender") };
  return { kind, key: keyOf(kind, transfer), atMs, ...names };
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
function outputOf({ output }: { readonly output?: string | undefined }): string | undefined {
  return output ? output.slice(-MAX_TEXT).toWellFormed() : undefined;
}

/** Texts from senders can be very long. */
function cut(text: string, maxLength = MAX_TEXT): string {
  return text.length <= maxLength ? text.toWellFormed() : `${text.slice(0, maxLength).toWellFormed()}…`;
}
