/** The daemon's log: one line per change of state, one per outage, however long it lasts. */
import type { Fault } from "../base/faults.ts";
import type { DaemonWatch } from "../daemon.ts";
import type { HandoffWatch } from "../handoff/port.ts";
import type { HostWatch } from "../host/systemd.ts";
import type { Delivered, HandoffStep } from "../model/handoff.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import type { Log } from "../observe/log.ts";

export function logEvents(log: Log): DaemonWatch {
  const logged = new LoggedReasons();
  return {
    ...logHandoff(log),
    ready: () => log.info("ready"),
    clientIdMade: (origin, file) =>
      log.warn({ origin, file }, "a client id was made: have the service's administrator register it"),
    recordDamaged: (file, reason) => log.error({ file, reason }, "a record cannot be read"),
    workExposed: (folder) =>
      log.warn({ folder }, "others can exchange what Inlet works with: put work elsewhere"),
    leftOver: (fault) => log.warn({ fault }, "what is left of a transfer cannot be cleared away"),
    diskFull: (fault) => log.error({ fault }, "the disk is full: intake pauses until there is room"),
    diskHasRoom: (pausedForMs) => log.info(pausedFor(pausedForMs), "there is room on the disk again"),
    queueLost: (fault) =>
      log.error({ fault }, "the queue cannot be reached: nothing new is begun until it can"),
    queueBack: (lostForMs) => log.info(pausedFor(lostForMs), "the queue can be reached again"),
    queueForgets: (policy) =>
      log.warn({ policy }, "Redis may forget jobs: set its maxmemory-policy to noeviction"),
    reloaded: (mailboxes, waiting) =>
      log[waiting.length > 0 ? "warn" : "info"](
        { mailboxes, ...(waiting.length > 0 ? { needsRestart: waiting } : {}) },
        "the configuration was reloaded",
      ),
    reloadRefused: (fault) =>
      log.error({ fault }, "the configuration was refused: the old one stays in force"),
    orderFailed: ({ action, mailbox, trackingId }, fault) =>
      log.error({ mailbox, trackingId, action, fault }, "an order cannot be carried out, and is tried again"),
    unwatchable: (fault) =>
      log.warn({ fault }, "a folder cannot be watched for changes: it is checked every few seconds"),
    pageOpened: (address) => log.info({ address }, "the status page is open"),
    pageFailed: (address, reason) =>
      log.warn({ address, reason }, "the status page cannot be opened, and is tried again"),
    polled: (mailbox, listed, discovered) => log.debug({ mailbox, listed, discovered }, "polled"),
    pollFailed(mailbox, fault, first) {
      const level = first && !isLoggedForAll(fault) ? "warn" : "debug";
      log[level]({ mailbox, fault }, "the mailbox cannot be polled");
    },
    recovered(mailbox, failedForMs, fault) {
      const facts = { mailbox, failedForSeconds: Math.round(failedForMs / 1000) };
      log[isLoggedForAll(fault) ? "debug" : "info"](facts, "the mailbox can be polled again");
    },
    discovered: (record) => log.info(factsOf(record), "discovered"),
    rejected: (mailbox, entries, [fault, other]) =>
      log.warn(
        { mailbox, entries, fault, ...(other === undefined ? {} : { otherReason: other.message }) },
        "entries of the list cannot be used",
      ),
    missed: (mailbox, { described: expected }, dueMs) =>
      log.error(
        { mailbox, expected, due: new Date(dueMs).toISOString() },
        "an expected transfer did not come",
      ),
    arrived: (mailbox, { described: expected }) =>
      log.info({ mailbox, expected }, "an expected transfer came after all"),
    expiresSoon: (record) =>
      log.warn({ ...factsOf(record), expires: record.expires }, "expires soon and is not delivered"),
    progressed() {},
    stuck(record, fault) {
      const level = logged.isNew(record, `stuck ${fault.code}`) ? "error" : "debug";
      log[level]({ ...factsOf(record), state: record.state, fault }, "stuck, and tried again");
    },
    messageRefused: (record, fault) =>
      log.warn({ ...factsOf(record), fault }, "delivering without the confidential message"),
    passwordRefused: (record) => log.debug(factsOf(record), "a password was refused"),
    acknowledged: (record) => log.info(factsOf(record), "gone, and acknowledged"),
    lost: (record) => log.info(factsOf(record), "another attempt or an operator has ended it"),
    stateChanged: (record, fault) => logState(log, logged, record, fault),
  };
}

/** Logs trouble with the service manager. */
export function logHost(log: Log): HostWatch {
  return {
    hostDeaf: (reason) => log.error({ reason }, "systemd cannot be told how the service is"),
    workStuck: (work) =>
      log.error({ work }, "work shows no sign of life: the watchdog of systemd is no longer fed"),
  };
}

function logState(log: Log, logged: LoggedReasons, record: TransferRecord, fault: Fault | undefined): void {
  const { state, reason, message, until, folder } = record;
  const facts = { ...factsOf(record), reason, until, message };
  if (hasEnded(record)) logged.forget(record);
  if (state === "waiting") {
    const quiet = fault !== undefined && (isLoggedForAll(fault) || !logged.isNew(record, fault.code));
    log[quiet ? "debug" : "warn"](facts, "waiting");
  } else if (state === "quarantined") log.error(facts, "quarantined");
  else if (state === "gone") log.warn(facts, "gone");
  else if (state === "delivered") log.info({ ...factsOf(record), folder }, "delivered");
  else log.debug(factsOf(record), state);
}

/** A full disk concerns every transfer and mailbox: one line covers all of them. */
function isLoggedForAll(fault: Fault): boolean {
  return fault.code === "DISK_FULL";
}

/** Another process may end a transfer unnoticed, so the memory has a limit. */
const MOST_LOGGED = 10_000;

/** Reasons already logged for transfers that are not settled, so that a retry does not log them again. */
class LoggedReasons {
  readonly #reasons = new Map<string, Set<string>>();

  isNew(record: TransferRecord, reason: string): boolean {
    const key = keyOf(record);
    const known = this.#reasons.get(key) ?? new Set();
    // The map keeps the order of the last use: the oldest entry comes first.
    this.#reasons.delete(key);
    this.#reasons.set(key, known);
    const [oldest] = this.#reasons.keys();
    if (this.#reasons.size > MOST_LOGGED && oldest !== undefined) this.#reasons.delete(oldest);
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

function pausedFor(ms: number) {
  return { pausedForSeconds: Math.round(ms / 1000) };
}

function logHandoff(log: Log): Omit<HandoffWatch, "recordDamaged"> {
  /** Steps that have failed since they last succeeded. */
  const failing = new Set<HandoffStep>();
  return {
    handedOver(delivered, step) {
      failing.delete(step);
      log.info({ ...deliveryFacts(delivered), step }, "handed over");
    },
    handoffFailed(delivered, step, fault, { attempts, willRetry, output }) {
      const facts = {
        ...deliveryFacts(delivered),
        step,
        fault,
        attempts,
        ...(output === "" ? {} : { output }),
      };
      if (!willRetry) log.error(facts, "the hand-off failed, and was given up: inlet retry tries it again");
      else log[failing.has(step) ? "debug" : "warn"](facts, "the hand-off failed, and is tried again");
      failing.add(step);
    },
    pickedUp: (delivered, how) => log.info({ ...deliveryFacts(delivered), how }, "picked up"),
    overdue: (delivered, sinceMs) =>
      log.warn(
        { ...deliveryFacts(delivered), forSeconds: Math.round(sinceMs / 1000) },
        "not picked up in time",
      ),
    removed: (delivered, after) =>
      log[after === "picked-up" ? "info" : "warn"](
        { ...deliveryFacts(delivered), after },
        "its folder was removed from the inbox",
      ),
    leftInPlace: (delivered) =>
      log.warn(deliveryFacts(delivered), "its folder is not as it was delivered, and is not removed"),
    handoffsSeen: () => {},
    handoffsStuck: (fault) =>
      log.error({ fault }, "hand-offs cannot be read or written, and are tried again"),
    handoffsGoOn: (stuckForMs) =>
      log.info({ stuckForSeconds: Math.round(stuckForMs / 1000) }, "hand-offs go on again"),
  };
}

function deliveryFacts({ mailbox, trackingId, sender, folder }: Delivered) {
  return { mailbox, trackingId, sender, folder };
}
