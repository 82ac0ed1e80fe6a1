/** The status of the daemon, built from its events. It is bounded, and rebuilt after each start. */
import type { Clock } from "../base/clock.ts";
import { FAULT_CODES } from "../base/fault-codes.ts";
import { describeFault, type Fault, isOfDisk } from "../base/faults.ts";
import { formatCount } from "../base/phrases.ts";
import { actionsFor, commandOf } from "../model/actions.ts";
import { type Emit, listenTo, type Overdue, type ShownMailbox } from "../model/events.ts";
import { type HandoffTrouble, NO_HANDOFFS } from "../model/handoff.ts";
import { commandFor } from "../model/order.ts";
import { type Broken, describeBroken, type Promised } from "../model/promise.ts";
import { asStuck, shownFolder, type TransferRecord } from "../model/record.ts";
import {
  causesOf,
  type DaemonFacts,
  type Delivery,
  STATUS_VERSION,
  type Status,
  type TransferGroup,
  type TransferStatus,
  type Trouble,
} from "../model/status.ts";
import type { MailboxId } from "../model/transfer.ts";
import { MailboxBoard } from "./mailbox-board.ts";
import { byUrgency, TransferBoard } from "./transfer-board.ts";

/** How many entries a list of the status has; the totals count all. */
const MAX_SHOWN = 100;
const MAX_RECENT = 50;

/** Troubles of the daemon as a whole. */
export const GENERAL_TROUBLES = [
  "disk",
  "queue",
  "configuration",
  "files",
  "handoffs",
  "notify",
  "socket",
] as const;

export type GeneralTrouble = (typeof GENERAL_TROUBLES)[number];

export class Board {
  #facts: DaemonFacts;
  readonly #keptIn: ((transfer: TransferStatus) => string) | undefined;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #mailboxes: MailboxBoard;
  readonly #transfers: TransferBoard;
  readonly #troubles = new Map<GeneralTrouble, Trouble>();
  #needsRestart: readonly string[] = [];
  #recent: Delivery[] = [];
  #overdue: readonly Overdue[] = [];
  #broken: readonly Broken[] = [];
  #handoffs = NO_HANDOFFS;
  readonly #subscribers = new Set<() => void>();

  /** `keptIn`: finds the folder of a transfer in quarantine. */
  constructor(
    facts: DaemonFacts,
    mailboxes: readonly ShownMailbox[],
    clock: Clock,
    keptIn?: (transfer: TransferStatus) => string,
  ) {
    this.#facts = facts;
    this.#keptIn = keptIn;
    this.#clock = clock;
    this.#startedMs = clock.now();
    this.#mailboxes = new MailboxBoard(mailboxes, clock);
    this.#transfers = new TransferBoard(clock);
  }

  readonly listener: Emit = (event) => {
    this.#listen(event);
    this.#changed();
  };

  /** Called after every event, which may be thousands of times a second. Returns a function that ends the subscription. */
  onChange(subscriber: () => void): () => void {
    this.#subscribers.add(subscriber);
    return () => this.#subscribers.delete(subscriber);
  }

  /** Takes over the unfinished transfers of the ledger, and forgets transfers that other processes have finished. */
  learn(unfinished: readonly TransferRecord[]): void {
    this.#transfers.learn(unfinished);
    this.#changed();
  }

  /** After the loss of a disk: the queue is new and says which services rest, and polls say what fails. */
  reopen(): void {
    this.#mailboxes.reopen();
  }

  /** Adds deliveries of earlier runs, newest first, and transfers that were gone lately. */
  recall(deliveries: readonly Delivery[], gone: readonly TransferRecord[]): void {
    const isNew = ({ mailbox, trackingId, at }: Delivery) =>
      !this.#recent.some((it) => it.at === at && it.trackingId === trackingId && it.mailbox === mailbox);
    this.#recent = [...this.#recent, ...deliveries.filter(isNew)].slice(0, MAX_RECENT);
    for (const record of gone) this.#transfers.recall(record);
  }

  /** Every transfer that is being downloaded, is queued, or needs a person, the most urgent first. */
  transfers(): TransferStatus[] {
    const all = [...this.#transfers.list(), ...this.#handoffs.troubles.map(describeHandoff)];
    return all.toSorted(byUrgency).map(this.#mailboxes.labels.shown);
  }

  /** Adds what can be done, with the commands and options that reach this daemon, and where the content is kept. */
  withHelp(transfer: TransferStatus): TransferStatus {
    const { mailbox, trackingId, message, state, reason, noAttemptsLeft = false } = transfer;
    // With several mailboxes, commands have to name one.
    const options = { config: this.#facts.config, ...(this.#mailboxes.size > 1 ? { mailbox } : {}) };
    const kept = this.#mailboxes.labels.keyed(transfer);
    const isConfigured = this.#mailboxes.has(kept.mailbox);
    const about = { isExhausted: noAttemptsLeft, isHandedOver: reason !== "handoff", isConfigured };
    const actions = actionsFor(transfer, about);
    const commands = actions.map((act) => commandOf(act, trackingId, options));
    // The record's message contains the short commands: the complete ones replace them.
    const help = actions.reduce(
      (text, act, at) => text?.replaceAll(commandOf(act, trackingId), () => commands[at] ?? ""),
      message,
    );
    const keptIn = state === "quarantined" ? this.#keptIn?.(kept) : undefined;
    return { ...transfer, message: help, actions, commands, ...(keptIn === undefined ? {} : { keptIn }) };
  }

  hasTrouble(...what: readonly GeneralTrouble[]): boolean {
    return what.some((each) => this.#troubles.has(each));
  }

  /** See `MailboxBoard.promised`. */
  promisedPolls(polledMs: (mailbox: MailboxId) => number | undefined): Iterable<Promised> {
    return this.#mailboxes.promised(polledMs);
  }

  promisedDeliveries(): Iterable<Promised> {
    return this.#transfers.promised();
  }

  read(): Status {
    const nowMs = this.#clock.now();
    const { troubles: unusable, entries } = this.#mailboxes.unusable();
    const { shown } = this.#mailboxes.labels;
    const { totals, counts, waitingSince } = this.#transfers.read();
    const transfers = this.transfers();
    const attention = transfers.filter(({ group }) => group === "attention");
    const first = (wanted: TransferGroup) =>
      transfers.filter(({ group }) => group === wanted).slice(0, MAX_SHOWN);
    return {
      version: STATUS_VERSION,
      at: new Date(nowMs).toISOString(),
      live: true,
      daemon: { ...this.#facts, startedAt: new Date(this.#startedMs).toISOString() },
      troubles: [
        ...this.#troubles.values(),
        ...this.#overdue.map(shown).map(describeOverdue),
        // The trouble of the disk stands for those that it causes.
        ...this.#mailboxes
          .troubles(transfers)
          .filter((trouble) => !this.#troubles.has("disk") || !isOfDisk(trouble)),
        ...this.#mailboxes.pauses(this.#facts),
        ...unusable,
        ...this.#doubts(),
        ...this.#broken
          .filter(({ kind, isExplained }) => kind !== "poll" && !isExplained)
          .map(describeBroken),
        ...this.#mailboxes.renewals(this.#facts),
      ],
      overdue: this.#broken.map(({ kind, sinceMs }) => ({ kind, since: new Date(sinceMs).toISOString() })),
      needsRestart: this.#needsRestart,
      mailboxes: this.#mailboxes.read(),
      counts,
      totals: { ...totals, attention: totals.attention + this.#handoffs.troubled + entries },
      waitingSince,
      causes: causesOf(attention),
      attention: attention.slice(0, MAX_SHOWN).map((transfer) => this.withHelp(transfer)),
      downloading: first("downloading"),
      queued: first("queued"),
      recent: this.#recent.map(shown),
    };
  }

  readonly #listen = listenTo({
    "transfer-discovered": ({ record }) => this.#transfers.keep(record),
    "transfer-changed": ({ record }) => {
      if (record.state === "delivered") this.#delivered(record);
      this.#transfers.keep(record);
    },
    "transfer-stuck": ({ record, fault }) =>
      this.#transfers.keep(asStuck(record, describeFault(fault), fault.code), false),
    "transfer-progressed": ({ record, doneBytes, totalBytes }) =>
      this.#transfers.progressed(record, doneBytes, totalBytes),
    "transfer-acknowledged": ({ record }) => this.#transfers.forget(record),
    "transfer-lost": ({ record }) => this.#transfers.forget(record),
    "transfer-left": ({ record }) => this.#transfers.keep(record, false),
    "poll-succeeded": (event) => this.#mailboxes.polled(event),
    "poll-recovered": ({ mailbox }) => this.#mailboxes.recovered(mailbox),
    "poll-failed": (event) => this.#mailboxes.failed(event),
    "service-rests": (event) => this.#mailboxes.rests(event),
    "entries-rejected": ({ mailbox, entries, reasons: [first] }) => {
      if (first !== undefined) this.#mailboxes.rejected(mailbox, entries, first);
    },
    "overdue-listed": ({ overdue }) => {
      this.#overdue = overdue;
    },
    "outbox-scanned": ({ summary }) => {
      this.#handoffs = summary;
    },
    "disk-failed": ({ fault }) => this.#troubleBegan("disk", fault),
    "disk-recovered": () => this.#troubles.delete("disk"),
    "queue-lost": ({ fault }) => this.#troubleBegan("queue", fault),
    "queue-back": () => this.#troubles.delete("queue"),
    "handoffs-stuck": ({ fault }) => this.#troubleBegan("handoffs", fault),
    "handoffs-resumed": () => this.#troubles.delete("handoffs"),
    "notify-failed": ({ fault }) => this.#troubleBegan("notify", fault),
    "notify-succeeded": ({ failing }) => failing === 0 && this.#troubles.delete("notify"),
    "socket-failed": ({ fault }) => this.#troubleBegan("socket", fault),
    "socket-opened": () => this.#troubles.delete("socket"),
    "promises-changed": ({ broken }) => {
      this.#broken = broken;
      this.#mailboxes.overdue(broken.filter(({ kind }) => kind === "poll"));
    },
    "settings-refused": ({ fault }) => this.#troubleBegan("configuration", fault),
    "trust-looked-at": ({ fault }) =>
      fault === undefined ? this.#troubles.delete("files") : this.#troubleBegan("files", fault),
    "pauses-changed": ({ mailboxes }) => this.#mailboxes.set(mailboxes),
    "mailboxes-named": ({ mailboxes }) => this.#mailboxes.set(mailboxes),
    "settings-reloaded": ({ mailboxes, timezone, needsRestart }) => {
      this.#mailboxes.set(mailboxes);
      this.#facts = { ...this.#facts, timezone };
      this.#needsRestart = needsRestart;
      this.#troubles.delete("configuration");
      this.#troubles.delete("notify");
    },
  });

  #troubleBegan(what: GeneralTrouble, { code, message, advice }: Fault): void {
    const since = this.#troubles.get(what)?.since ?? new Date(this.#clock.now()).toISOString();
    this.#troubles.set(what, { what, since, code, message, advice });
  }

  #doubts(): Trouble[] {
    const found = this.#transfers.doubtful();
    if (found === undefined) return [];
    const { happened, advice } = FAULT_CODES.RECORDS_MISSING;
    const message = `${happened}: ${formatCount(found.count, "transfer waits", "transfers wait")}.`;
    return [{ what: "records", since: found.since, code: "RECORDS_MISSING", message, advice }];
  }

  #delivered(record: TransferRecord): void {
    const { mailbox, trackingId, sender, folder = "", inbox, subject, files, bytes } = record;
    const nowMs = this.#clock.now();
    const { discovered, delivered: at = new Date(nowMs).toISOString() } = record.at;
    const tookSeconds =
      discovered === undefined ? undefined : Math.max(0, nowMs - Date.parse(discovered)) / 1000;
    const facts = { mailbox, trackingId, sender, folder, inbox, subject, files, bytes };
    this.#recent = [{ ...facts, at, tookSeconds }, ...this.#recent].slice(0, MAX_RECENT);
  }

  #changed(): void {
    for (const subscriber of this.#subscribers) subscriber();
  }
}

function describeOverdue({ mailbox, expectation, dueMs }: Overdue): Trouble {
  return {
    what: `mailbox ${mailbox}`,
    since: new Date(dueMs).toISOString(),
    code: "ARRIVAL_MISSED",
    message: `An expected transfer did not arrive: ${expectation.described}.`,
    advice: FAULT_CODES.ARRIVAL_MISSED.advice,
  };
}

/** A command or webhook fails, or no consumer picks the folder up. */
function describeHandoff(trouble: HandoffTrouble): TransferStatus {
  const { mailbox, trackingId, sender, deliveredAt, failed, isOverdue, problem, subject, files, bytes } =
    trouble;
  const retry = commandFor("retry", trackingId);
  const failures = failed.map(({ message, willRetry }) => {
    const next = willRetry ? "Inlet will try it again" : "It was given up";
    return `${message}. ${next}; ${retry} tries it ${willRetry ? "at once" : "again"}.`;
  });
  const waits = isOverdue ? [`${shownFolder(trouble)} was not picked up yet.`] : [];
  const changed = problem === undefined ? [] : [`${shownFolder(trouble)} was changed: ${problem}.`];
  const reason = failures.length > 0 ? "handoff" : isOverdue ? "not-picked-up" : "changed";
  const message = [...failures, ...waits, ...changed].join(" ");
  const facts = { mailbox, trackingId, sender, subject, files, bytes, since: deliveredAt, reason, message };
  return { ...facts, state: "delivered", group: "attention" };
}
