/** The daemon's log: one line per change of state, one per outage, however long it lasts. */

import type { Fault } from "../base/faults.ts";
import { isoOf } from "../base/phrases.ts";
import { BoundedMap } from "../base/waits.ts";
import { type AllListeners, type Emit, listenTo } from "../model/events.ts";
import type { Delivered, HandoffStep } from "../model/handoff.ts";
import { hasEnded, isUnwanted, QUIET, type TransferRecord } from "../model/record.ts";
import type { EventLines } from "../observe/log.ts";

export function logEvents(log: EventLines): Emit {
  const logged = new LoggedReasons();
  /** Hand-off steps that have failed since they last succeeded. */
  const failing = new Set<HandoffStep>();
  let exposed: string | undefined;
  const all: AllListeners = {
    // Transfers.
    "transfer-discovered": ({ record }) => log.info(factsOf(record), "discovered"),
    "transfer-changed": ({ record, fault }) => logState(log, logged, record, fault),
    // Too often for a log.
    "transfer-progressed": () => {},
    "transfer-stuck": ({ record, fault }) => {
      const level = logged.isNew(record, `stuck ${fault.code}`) ? "error" : "debug";
      log[level]({ ...factsOf(record), state: record.state, fault }, "stuck, and retried");
    },
    "transfer-lost": ({ record }) => log.info(factsOf(record), "ended by another attempt or an operator"),
    "transfer-left": ({ record }) => log.debug(factsOf(record), "left to a later attempt"),
    "transfer-acknowledged": ({ record }) => log.info(factsOf(record), "gone, and acknowledged"),
    "transfer-expiring": ({ record }) =>
      log.warn({ ...factsOf(record), expires: record.expires }, "expires soon and is not delivered"),
    "password-refused": ({ record }) => log.debug(factsOf(record), "a password was refused"),
    "message-refused": ({ record, fault }) =>
      log.warn({ ...factsOf(record), fault }, "delivering without the confidential message"),
    "archive-left": ({ record, archive, fault }) =>
      log.warn({ ...factsOf(record), archive, fault }, "delivering an archive that was not unpacked"),

    // Mailboxes.
    "poll-succeeded": ({ mailbox, listed, discovered }) =>
      log.debug({ mailbox, listed, discovered }, "polled"),
    "poll-failed": ({ mailbox, fault, isFirst }) => {
      const level = isFirst && !isLoggedForAll(fault) ? "warn" : "debug";
      log[level]({ mailbox, fault }, "the mailbox cannot be polled");
    },
    "poll-recovered": ({ mailbox, failedForMs, fault }) => {
      const facts = { mailbox, failedForSeconds: inSeconds(failedForMs) };
      log[isLoggedForAll(fault) ? "debug" : "info"](facts, "the mailbox can be polled again");
    },
    "entries-rejected": ({ mailbox, entries, reasons: [fault, other] }) => {
      const facts = { mailbox, entries, fault, otherReason: other?.message };
      log.warn(facts, "entries of the list cannot be used");
    },
    "arrival-missed": ({ mailbox, expectation, dueMs }) => {
      const facts = { mailbox, expected: expectation.described, due: isoOf(dueMs) };
      log.error(facts, "an expected transfer did not arrive");
    },
    "arrival-late": ({ mailbox, expectation }) =>
      log.info({ mailbox, expected: expectation.described }, "an expected transfer arrived late"),
    // Each was logged when it became overdue.
    "overdue-listed": () => {},

    // Hand-offs.
    "handoff-succeeded": ({ delivered, step }) => {
      failing.delete(step);
      log.info({ ...deliveryFacts(delivered), step }, "handed over");
    },
    "handoff-failed": ({ delivered, step, fault, attempts, willRetry }) => {
      const facts = { ...deliveryFacts(delivered), step, fault, attempts, output: fault.output };
      if (!willRetry) log.error(facts, "the hand-off failed, and was given up: inlet retry tries it again");
      else log[failing.has(step) ? "debug" : "warn"](facts, "the hand-off failed, and is retried");
      failing.add(step);
    },
    "folder-picked-up": ({ delivered, how }) => log.info({ ...deliveryFacts(delivered), how }, "picked up"),
    "pick-up-overdue": ({ delivered, sinceMs }) =>
      log.warn({ ...deliveryFacts(delivered), forSeconds: inSeconds(sinceMs) }, "not picked up in time"),
    "manifest-changed": ({ delivered, problem }) =>
      log.warn({ ...deliveryFacts(delivered), problem }, "its folder was changed after the delivery"),
    "folder-removed": ({ delivered, after }) => {
      const facts = { ...deliveryFacts(delivered), after };
      log[after === "picked-up" ? "info" : "warn"](facts, "its folder was removed from the inbox");
    },
    "folder-left": ({ delivered }) =>
      log.warn(deliveryFacts(delivered), "its folder was changed after the delivery, and is not removed"),
    // As above.
    "outbox-scanned": () => {},
    "handoffs-stuck": ({ fault }) =>
      log.error({ fault }, "hand-offs cannot be read or written, and are retried"),
    "handoffs-resumed": ({ stuckForMs }) =>
      log.info({ stuckForSeconds: inSeconds(stuckForMs) }, "hand-offs work again"),

    // Notifications.
    "notify-succeeded": ({ channel, notices }) => log.info({ channel, notices }, "notified"),
    "notify-failed": ({ channel, notices, fault, isFirst, waitMs }) =>
      log[isFirst ? "warn" : "debug"](
        { channel, notices, fault },
        waitMs === undefined
          ? "the mail server refused some recipients of a notification: the others have it"
          : "a notification could not be sent, and is retried",
      ),

    // The process.
    ready: () => log.info({}, "ready"),
    "client-id-created": ({ origin, path: file }) =>
      log.warn({ origin, file }, "a client id was created: have the service's administrator register it"),
    "record-damaged": ({ path: file, reason }) => log.error({ file, reason }, "a record cannot be read"),
    "trust-looked-at": ({ fault }) => {
      if (fault !== undefined && fault.message !== exposed)
        log.warn({ fault }, "other users may be able to change what Inlet trusts");
      exposed = fault?.message;
    },
    "recovery-failed": ({ fault }) => log.warn({ fault }, "an unfinished transfer cannot be cleaned up"),
    "disk-failed": ({ fault }) => log.error({ fault }, "a disk cannot be used: work that needs it pauses"),
    "disk-recovered": ({ pausedForMs }) =>
      log.info({ pausedForSeconds: inSeconds(pausedForMs) }, "the disk can be used again"),
    "service-rests": ({ service, rest }) => {
      if (rest === undefined) log.info({ service }, "the service does not rest any longer");
      else if (rest.isAsked)
        log.warn({ service, forSeconds: inSeconds(rest.forMs) }, "the service asked for a rest");
      else log.warn({ service }, "the service does not answer: one mailbox asks for all once a minute");
    },
    "queue-lost": ({ fault }) =>
      log.error({ fault }, "the queue does not work: no new work begins until it does"),
    "queue-back": ({ lostForMs }) =>
      log.info({ pausedForSeconds: inSeconds(lostForMs) }, "the queue works again"),
    "queue-evicts": ({ policy }) =>
      log.warn({ policy }, "Redis may evict jobs: set its maxmemory-policy to noeviction"),
    "promises-changed": ({ began, kept }) => {
      for (const { subject, text, sinceMs } of began) {
        const facts = { what: subject, since: isoOf(sinceMs), problem: text };
        log.error(facts, "something should have happened by now, and has not");
      }
      for (const { subject } of kept) log.info({ what: subject }, "what was late is no longer late");
    },
    "settings-reloaded": ({ mailboxes, needsRestart }) => {
      const facts = { mailboxes: mailboxes.length, ...(needsRestart.length > 0 ? { needsRestart } : {}) };
      log[needsRestart.length > 0 ? "warn" : "info"](facts, "the configuration was reloaded");
    },
    "pauses-changed": ({ mailboxes }) => {
      const paused = mailboxes.filter(({ pause }) => pause !== undefined).map(({ name }) => name);
      if (paused.length === 0) log.info({}, "no mailbox is paused by an operator now");
      else log.warn({ paused }, "mailboxes are paused by an operator: they are not polled");
    },
    // The log names the keys, which never change.
    "mailboxes-named": () => {},
    "settings-refused": ({ fault }) =>
      log.error({ fault }, "the configuration was refused: the old one stays in force"),
    "order-failed": ({ order: { action, mailbox, trackingId }, fault }) =>
      fault.code === "ORDER_IMPOSSIBLE"
        ? log.error({ mailbox, trackingId, action, fault }, "an order cannot be carried out")
        : log.error({ mailbox, trackingId, action, fault }, "an order cannot be carried out, and is retried"),
    "operator-acted": ({ act, by, mailbox, trackingId }) =>
      log.info({ mailbox, trackingId, act, ...by }, "an operator acted"),
    "folder-unwatchable": ({ fault }) =>
      log.warn({ fault }, "a folder cannot be watched for changes: it is checked every few seconds"),
    "console-opened": ({ address }) => log.info({ address }, "the console is open"),
    "console-failed": ({ address, reason }) =>
      log.warn({ address, reason }, "the console cannot be opened, and is retried"),
    "callers-limited": ({ limit, from, count }) =>
      log.warn({ reason: limit, from, count }, "callers of the console exceed a limit"),
    "socket-opened": ({ address }) => log.debug({ address }, "commands can reach the daemon"),
    "socket-failed": ({ fault }) =>
      log.warn({ fault }, "commands cannot reach the daemon: it has no socket, and retries"),
    "supervisor-unreachable": ({ reason }) =>
      log.error({ reason }, "systemd cannot be notified of the service's state"),
    "work-stuck": ({ work }) =>
      log.error({ work }, "work makes no progress: the watchdog of systemd is no longer fed"),
  };
  return listenTo(all);
}

function logState(
  log: EventLines,
  logged: LoggedReasons,
  record: TransferRecord,
  fault: Fault | undefined,
): void {
  const { state, reason, message, until, folder, inbox } = record;
  const facts = { ...factsOf(record), reason, until, message };
  if (hasEnded(record)) logged.forget(record);
  if (state === "waiting") {
    const isLogged = fault !== undefined && (isLoggedForAll(fault) || !logged.isNew(record, fault.code));
    log[isLogged ? "debug" : reason === QUIET ? "info" : "warn"](facts, "waiting");
  } else if (state === "quarantined") log.error(facts, "quarantined");
  else if (state === "gone") log[isUnwanted(record) ? "info" : "warn"](facts, "gone");
  else if (state === "delivered") log.info({ ...factsOf(record), folder, inbox }, "delivered");
  else log.debug(factsOf(record), state);
}

/** The line about the disk covers all transfers and mailboxes that need it. */
function isLoggedForAll({ code }: Fault): boolean {
  return ["DISK_FULL", "INBOX_MISSING", "INBOX_APART"].includes(code);
}

/** Reasons already logged for transfers that are not settled, so that a retry does not log them again. */
class LoggedReasons {
  /** Another process may end a transfer unnoticed. */
  readonly #reasons = new BoundedMap<Set<string>>();

  isNew(record: TransferRecord, reason: string): boolean {
    const key = keyOf(record);
    const known = this.#reasons.get(key) ?? new Set();
    this.#reasons.set(key, known);
    if (known.has(reason)) return false;
    known.add(reason);
    return true;
  }

  forget(record: TransferRecord): void {
    this.#reasons.delete(keyOf(record));
  }
}

function keyOf({ mailbox, trackingId }: TransferRecord): string {
  return `${mailbox}\0${trackingId}`;
}

function factsOf({ mailbox, trackingId, sender }: TransferRecord) {
  return { mailbox, trackingId, sender };
}

function inSeconds(ms: number): number {
  return Math.round(ms / 1000);
}

function deliveryFacts({ mailbox, trackingId, sender, folder, inbox }: Delivered) {
  return { mailbox, trackingId, sender, folder, inbox };
}
