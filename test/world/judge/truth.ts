/** Compares what a daemon says, each minute, with what is true: it is well only if everything is, and it serves in time. */
import { headlineOf, type Status } from "../../../src/model/status.ts";
import type { StoredTransfer } from "../plan/sent.ts";
import { type Box, RULE_PASSWORDS, type Site } from "../plan/site.ts";
import type { Daemon, World } from "../world.ts";
import { boxOf, decide, fold } from "./expect.ts";
import type { Received } from "./observer.ts";

const MINUTE_MS = 60_000;
/** Three intervals of polls are promised, a broken promise shows within a minute, and the world looks once a minute. */
const POLL_SHOWN_MS = 6 * MINUTE_MS;
/** A transfer that could be delivered, and is not, shows by then. */
const WAIT_SHOWN_MS = 15 * MINUTE_MS;
/** From its arrival to its delivery, with nothing in its way at any time. */
const SERVED_MS = 4 * MINUTE_MS;
/** The same after disturbances: pauses between attempts have grown, up to an hour. */
const SERVED_LATE_MS = 80 * MINUTE_MS;
/** Nothing is in trouble any longer after this time without a disturbance. */
const CALM_MS = 13 * MINUTE_MS;
/** A pause that a service asks for is kept this long. */
const LONGEST_REST_MS = 65 * MINUTE_MS;
/** A folder of ours that cannot be read is looked at twice a minute, and shows within another one. */
const FOLDER_SHOWN_MS = 2.5 * MINUTE_MS;
/** An order is taken up within a minute, also if no watch reports it. */
const ORDER_MS = 80_000;

export class Truth {
  readonly #world: World;
  /** When each transfer was first listed for its recipient, and could be delivered since. */
  readonly #openSinceMs = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Once a minute. */
  look(): void {
    const { daemon, schedule } = this.#world;
    const isRunning =
      daemon !== undefined && !daemon.process.isDead && daemon.process.frozenUntilMs <= schedule.nowMs;
    const open = this.#findOpen();
    for (const text of [...this.#checkTimes(open), ...this.#checkOpen()]) this.#world.observer.violate(text);
    if (!isRunning || daemon.vitals === undefined || daemon.mode === "once") return;
    const status = daemon.process.run(() => daemon.vitals?.status());
    if (status === undefined) return;
    const texts = [
      this.#checkStatus(status, daemon, open),
      this.#checkPolls(daemon),
      this.#checkOrders(daemon),
    ];
    for (const text of texts.flatMap((each) => [...each])) this.#world.observer.violate(text);
  }

  /** No answer is still read for a transfer whose round has ended. */
  *#checkOpen(): Iterable<string> {
    const { observer, network, calm } = this.#world;
    for (const { transferId, trackingId, process } of network.unanswered) {
      const { key = "" } = observer.received.get(transferId ?? "") ?? {};
      const end = observer.ends.get(key);
      const isBusy = process.isDead || process.frozenUntilMs > this.#nowMs - MINUTE_MS;
      const isAgain = observer.orders.some((order) => order.key === key && order.act !== "discard");
      if (end === undefined || isBusy || isAgain || end.atMs > this.#nowMs - MINUTE_MS) continue;
      if (end.state === "gone" && end.reason !== "discarded") continue;
      if (calm.sinceMs(-1) < this.#nowMs - MINUTE_MS)
        yield `I7: ${trackingId} is still received, and it was ${end.state} ${end.reason ?? ""}`;
    }
  }

  get #nowMs(): number {
    return this.#world.schedule.nowMs;
  }

  /** Transfers that nothing keeps from their delivery, as far as sender, service and configuration go. */
  #findOpen(): Received[] {
    const open = [...this.#world.observer.received.values()].filter((of) => this.#isServable(of));
    const keys = new Set(open.map(({ key }) => key));
    for (const key of this.#openSinceMs.keys()) if (!keys.has(key)) this.#openSinceMs.delete(key);
    for (const key of keys) if (!this.#openSinceMs.has(key)) this.#openSinceMs.set(key, this.#nowMs);
    return open;
  }

  #isServable(of: Received): boolean {
    const { site, observer, exitCodes, disk } = this.#world;
    const { key, address, transfer } = of;
    const box = boxOf(site, address);
    if (box === undefined || !this.#isListed(of, box)) return false;
    if (observer.ends.has(key) || observer.isDamaged(transfer.trackingId)) return false;
    if (observer.orders.some((order) => order.key === key)) return false;
    if (!this.#isOpenable(transfer, box)) return false;
    if (decide(site, address, transfer).action !== "deliver" || (site.hasCheck && exitCodes.check !== 0))
      return false;
    if (transfer.checksums === "none" && box.verify !== "prefer" && transfer.files.length > 0) return false;
    if (!isWithinLimits(site, transfer)) return false;
    // Somebody else's file has its name, or a wrong clock made it expire.
    if (observer.foreign.size > 0 || disk.isFull) return false;
    return transfer.expiresMs > this.#nowMs + 60 * MINUTE_MS;
  }

  /** The mailbox is its recipient's, and its service lists it. */
  #isListed({ address, transfer }: Received, box: Box): boolean {
    const { service, recipients } = transfer;
    const isMine = recipients.some((each) => fold(each) === address);
    return isMine && box.service === service && this.#world.services[service]?.stateOf(transfer) === "active";
  }

  /** Its password is known, and no other was tried. */
  #isOpenable(transfer: StoredTransfer, box: Box): boolean {
    const { trackingId, sender, password, securityMode, service, isPasswordInLink, lockedUntilMs } = transfer;
    const isKnown =
      box.knowsPassword &&
      password === RULE_PASSWORDS[service] &&
      securityMode === undefined &&
      sender.isWellFormed();
    if (!isKnown && !isPasswordInLink) return false;
    return !this.#world.requests.hasSpentOn(trackingId) && lockedUntilMs.size === 0;
  }

  /** Whatever happens to others, this one is served. */
  *#checkTimes(open: readonly Received[]): Iterable<string> {
    const { calm, plan, isRefused, habitsOf } = this.#world;
    if (isRefused) return;
    for (const { key, transfer } of open) {
      const sinceMs = Math.max(this.#openSinceMs.get(key) ?? this.#nowMs, calm.sinceMs(transfer.service));
      const isHonest = calm.isUntouched(transfer.service) && plan.isCron !== true && this.#world.hasNoEdits;
      const hasOddHabits = Object.keys(habitsOf(transfer.service)).length > 0;
      const limitMs = isHonest ? SERVED_MS + (hasOddHabits ? 2 * MINUTE_MS : 0) : SERVED_LATE_MS;
      if (this.#nowMs - sinceMs > limitMs + MINUTE_MS)
        yield `I6: ${key} is not delivered ${limitMs / MINUTE_MS} minutes after nothing was in its way`;
    }
  }

  /** Each mailbox is polled at its interval, and not much more often. */
  *#checkPolls(daemon: Daemon): Iterable<string> {
    const { requests, calm, observer, site, plan, habitsOf } = this.#world;
    const pollMs = (site.pollSeconds ?? 60) * 1_000;
    const sinceMs = Math.max(
      calm.sinceMs(),
      daemon.startedMs,
      daemon.appliedMs,
      daemon.process.frozenUntilMs,
    );
    const calmMs = this.#nowMs - sinceMs;
    if (calmMs < 3 * pollMs || calm.jumpsMs.length > 0 || plan.isCron || observer.orders.length > 0) return;
    const pages = 2 + this.#world.transfers.length;
    // Once, the fields that a service refuses are found out group by group, and by three more lists that it names no modes.
    const learned = (service: number) => {
      const { refusesFields = false, hasNoModes = false } = habitsOf(service);
      return (refusesFields ? 12 : 0) + (hasNoModes ? 3 * pages : 0);
    };
    for (const { email, service } of site.boxes) {
      // Pauses grow while a service fails.
      if (!calm.isUntouched(service) && this.#nowMs - calm.sinceMs(service) < LONGEST_REST_MS) continue;
      const lists = requests.listsSince(fold(email), this.#nowMs - 3 * pollMs);
      if (lists === 0) yield `I6: ${email} is not polled at its interval of ${pollMs / 1_000} s`;
      if (lists > 6 * pages + learned(service))
        yield `I8: ${email} is polled ${lists} times in ${(3 * pollMs) / 1_000} s`;
    }
  }

  *#checkStatus(status: Status, daemon: Daemon, open: readonly Received[]): Iterable<string> {
    const { tone, words } = headlineOf(status);
    if (tone === "good") yield* this.#checkGood(words, daemon, open);
    const calmMs = this.#nowMs - Math.max(this.#world.calm.sinceMs(), runsSinceMs(daemon));
    const isCalm = calmMs > CALM_MS && ![0, 1].some((service) => this.#isPaused(service));
    if (!isCalm || this.#world.observer.foreign.size > 0 || this.#world.isRefused) return;
    if (this.#world.observer.spoiled.size > 0) return;
    for (const { kind } of status.overdue) yield `I7: ${kind} is shown as overdue, and nothing is wrong`;
    for (const { what, code } of status.troubles) {
      if (code === "RECORDS_MISSING" && this.#world.hasLost) continue;
      yield `I7: status has a trouble, and nothing is wrong: ${what} ${code}`;
    }
  }

  /** Status says that all is well, with these words: folders are read, mailboxes polled, and transfers delivered. */
  *#checkGood(words: string, daemon: Daemon, open: readonly Received[]): Iterable<string> {
    const { requests, calm, badFolderSinceMs = this.#nowMs } = this.#world;
    const sinceRunMs = runsSinceMs(daemon);
    if (this.#nowMs - Math.max(badFolderSinceMs, sinceRunMs) > FOLDER_SHOWN_MS)
      yield `I7: status says "${words}", and a folder cannot be read`;
    for (const { email, service } of daemon.site.boxes) {
      const listedMs = requests.listedMs.get(`${service} ${fold(email)}`) ?? 0;
      const restedMs = requests.restedUntilMs(service);
      const unpolledMs = this.#nowMs - Math.max(listedMs, sinceRunMs, daemon.appliedMs, restedMs);
      if (requests.restedMs(daemon.process, service, daemon.appliedMs) > MINUTE_MS)
        yield `I7: status says "${words}", and the service of ${email} rests`;
      if (unpolledMs > POLL_SHOWN_MS)
        yield `I7: status says "${words}", and ${email} was not polled for ${Math.round(unpolledMs / MINUTE_MS)} minutes`;
    }
    for (const { key, transfer } of open) {
      // What waits is told to the next process as a time, whose clock may differ, and without the service's rest.
      const isLong = calm.jumpsMs.length > 0 || this.#isPaused(transfer.service);
      const openMs = this.#nowMs - Math.max(this.#openSinceMs.get(key) ?? this.#nowMs, sinceRunMs);
      if (openMs > (isLong ? SERVED_LATE_MS : WAIT_SHOWN_MS))
        yield `I7: status says "${words}", and ${key} could be delivered for ${Math.round(openMs / MINUTE_MS)} minutes`;
    }
  }

  /** The service may have asked for a pause. */
  #isPaused(service: number): boolean {
    return this.#world.calm.hadWeather(service, ["limiting"], this.#nowMs - LONGEST_REST_MS);
  }

  /** A running daemon takes up each order soon, whatever the others wait for. */
  *#checkOrders(daemon: Daemon): Iterable<string> {
    const { observer, calm, requests } = this.#world;
    for (const { act, atMs, actedMs, record, key, opened, isTried = false } of observer.orders) {
      const of = observer.received.get(record.transferId);
      // A retry of what waits for another attempt is an attempt.
      const isAttempt =
        act === "retry" &&
        record.state === "waiting" &&
        ["retry", "locked", "slow"].includes(record.reason ?? "");
      if (actedMs !== undefined && isAttempt && of !== undefined && of.transfer.opened === opened) {
        const isThere = this.#world.services[of.transfer.service]?.stateOf(of.transfer) === "active";
        const fromMs = Math.max(
          actedMs,
          daemon.startedMs,
          calm.sinceMs(of.transfer.service),
          requests.restedUntilMs(of.transfer.service),
          daemon.process.frozenUntilMs,
          daemon.appliedMs,
        );
        // A service that is away, or confused, counts nothing.
        const isUnseen = isTried && calm.sinceMs(of.transfer.service) > atMs;
        const isDue =
          !isUnseen && isThere && !observer.ends.has(key) && boxOf(daemon.site, of.address) !== undefined;
        if (isDue && this.#nowMs - fromMs > 2 * ORDER_MS)
          yield `the order to retry ${record.trackingId} has led to no attempt`;
      }
      if (actedMs !== undefined) continue;
      const sinceMs = Math.max(
        atMs,
        daemon.startedMs,
        calm.sinceMs(-1),
        daemon.process.frozenUntilMs,
        daemon.appliedMs,
      );
      const isConfigured = daemon.site.boxes.some(({ email }) => key.endsWith(` ${fold(email)}`));
      if (isConfigured && this.#nowMs - sinceMs > ORDER_MS)
        yield `I6: the order to ${act} ${record.trackingId} is not taken up`;
    }
  }
}

/** It has neither started nor paused since. */
function runsSinceMs({ startedMs, process }: Daemon): number {
  return Math.max(startedMs, process.frozenUntilMs);
}

function isWithinLimits({ maxFiles = 1_000, maxBytes = 1_000_000 }: Site, transfer: StoredTransfer): boolean {
  const { files, message } = transfer;
  const bytes = files.reduce((sum, file) => sum + file.bytes.length, message?.length ?? 0);
  return files.length <= maxFiles && bytes <= maxBytes;
}
