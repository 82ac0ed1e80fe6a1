/** What the daemon tells in its log: one line per change of state, one per outage, however long it lasts. */
import type { Fault } from "../base/faults.ts";
import type { DaemonWatch } from "../daemon.ts";
import type { HostWatch } from "../host/systemd.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import type { Log } from "../observe/log.ts";
import { tellHandoff } from "./telling-handoff.ts";

export function tellLog(log: Log): DaemonWatch {
  const told = new Told();
  return {
    ...tellHandoff(log),
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
      const level = first && !isToldForAll(fault) ? "warn" : "debug";
      log[level]({ mailbox, fault }, "the mailbox cannot be polled");
    },
    recovered(mailbox, failedForMs, fault) {
      const facts = { mailbox, failedForSeconds: Math.round(failedForMs / 1000) };
      log[isToldForAll(fault) ? "debug" : "info"](facts, "the mailbox can be polled again");
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
      const level = told.isNew(record, `stuck ${fault.code}`) ? "error" : "debug";
      log[level]({ ...factsOf(record), state: record.state, fault }, "stuck, and tried again");
    },
    messageRefused: (record, fault) =>
      log.warn({ ...factsOf(record), fault }, "delivering without the confidential message"),
    passwordRefused: (record) => log.debug(factsOf(record), "a password was refused"),
    acknowledged: (record) => log.info(factsOf(record), "gone, and acknowledged"),
    lost: (record) => log.info(factsOf(record), "another attempt or an operator has ended it"),
    stateChanged: (record, fault) => tellState(log, told, record, fault),
  };
}

/** Of who supervises the process. */
export function tellHost(log: Log): HostWatch {
  return {
    hostDeaf: (reason) => log.error({ reason }, "systemd cannot be told how the service is"),
    workStuck: (work) =>
      log.error({ work }, "work shows no sign of life: the watchdog of systemd is no longer fed"),
  };
}

function tellState(log: Log, told: Told, record: TransferRecord, fault: Fault | undefined): void {
  const { state, reason, message, until, folder } = record;
  const facts = { ...factsOf(record), reason, until, message };
  if (hasEnded(record)) told.forget(record);
  if (state === "waiting") {
    const quiet = fault !== undefined && (isToldForAll(fault) || !told.isNew(record, fault.code));
    log[quiet ? "debug" : "warn"](facts, "waiting");
  } else if (state === "quarantined") log.error(facts, "quarantined");
  else if (state === "gone") log.warn(facts, "gone");
  else if (state === "delivered") log.info({ ...factsOf(record), folder }, "delivered");
  else log.debug(factsOf(record), state);
}

/** A full disk meets every transfer and mailbox: one line says it for all of them. */
function isToldForAll(fault: Fault): boolean {
  return fault.code === "DISK_FULL";
}

/** Another process may finish a transfer, and nobody hears of it here: more than so many are not remembered. */
const MOST_TOLD = 10_000;

/** What was told of transfers that are not settled: the same is not told again with every try. */
class Told {
  readonly #reasons = new Map<string, Set<string>>();

  isNew(record: TransferRecord, reason: string): boolean {
    const key = keyOf(record);
    const known = this.#reasons.get(key) ?? new Set();
    // The one that was told of longest ago comes first.
    this.#reasons.delete(key);
    this.#reasons.set(key, known);
    const [oldest] = this.#reasons.keys();
    if (this.#reasons.size > MOST_TOLD && oldest !== undefined) this.#reasons.delete(oldest);
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
