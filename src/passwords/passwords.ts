/** Tries passwords one after the other. Each takes a slot of the budget before it is sent. */

import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../base/clock.ts";
import { KeyedMutex } from "../base/concurrency.ts";
import { replaceDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { tryReadFile } from "../base/files.ts";
import { parseAs } from "../base/json.ts";
import type { Secret } from "../base/secret.ts";
import { monotonicMs, pause } from "../base/timers.ts";
import { BoundedMap } from "../base/waits.ts";
import type { AttemptSlots, CountedAttempts, SpentAttempts, TakenSlot } from "../model/attempts.ts";
import type { Mailbox, PasswordRule } from "../model/mailbox.ts";
import { expiryOf, type PasswordObstacle, type TransferKey, type TransferRecord } from "../model/record.ts";
import { Breaker, BreakerMemoryShape } from "./breaker.ts";
import { type Candidate, findCandidates } from "./candidates.ts";
import { explain, fingerprintOf, mayTry, NOTES, type Permission } from "./guard.ts";
import { keyOf, LockedTransfers } from "./memory.ts";
import type { CoRecipients, PasswordRequest, PasswordService, Proof, ProofRequest } from "./request.ts";
import {
  clearDrop,
  clearDropOf,
  type Drop,
  forgetExpired,
  forgetKept,
  type HandDrop,
  type KeptKey,
  keepPassword,
  listDrops,
  markOf,
  openStored,
  pathOfDrop,
  pathsOfDrops,
  readDrop,
  readKept,
} from "./stored.ts";

/** How long to wait for the answer to an attempt of another process. */
const MAX_WAIT_MS = 3_000;
const LOOK_EVERY_MS = 100;
/** An older attempt that has no answer will get none. */
const LONGEST_ATTEMPT_MS = 30_000;

export interface PasswordsOptions {
  readonly state: string;
  readonly attempts: AttemptSlots;
  readonly clock: Clock;
  readonly coRecipients: CoRecipients;
  /** How long an accepted password is kept that a person supplied; `undefined`: until the transfer expires. */
  readonly keepMs: number | undefined;
  nameOf(key: TransferKey): string;
  /** Records a password that was put into the drop folder by hand, before it is used. May be called twice. */
  onHandDrop?(record: TransferRecord, drop: HandDrop): Promise<void>;
}

interface ProofTools extends PasswordsOptions {
  /**
   * Passwords that the service has accepted. They need no slot, also for other mailboxes that received the transfer, even
   * if the disk refused to store them.
   */
  readonly proven: Map<string, Secret>;
  readonly breaker: Breaker;
  /** Refused passwords that could not be written to the disk: the tracking-id with the fingerprint. */
  readonly unwritten: Set<string>;
  readonly locks: LockedTransfers;
}

/** One transfer whose password is wanted, with the tools for it. */
type Search = ProofTools & PasswordRequest;

export type Passwords = Awaited<ReturnType<typeof openPasswords>>;

/** Opens the passwords of a state folder. */
export async function openPasswords(options: PasswordsOptions) {
  const { state, clock } = options;
  await openStored(state, clock.now());
  const memory = join(state, "held.json");
  const breaker = new Breaker(clock, await readMemory(memory), (held) =>
    replaceDurably(memory, JSON.stringify(held), 0o600),
  );
  const proven = new BoundedMap<Secret>();
  const tools = { ...options, proven, breaker, unwritten: new Set<string>(), locks: new LockedTransfers() };
  // One mailbox at a time for each transfer, at any service: the next one knows which password was refused.
  const mutex = new KeyedMutex();
  return {
    /**
     * Tries candidates one after the other, each alone: accepted before, dropped by a person, carried by the link, named
     * by a rule; the last two only if the security mode allows that. An attempt is counted before it is sent. A refused
     * password is never sent again, for any mailbox or service. Any other fault is thrown; the attempt stays counted
     * unless the service itself says that it cost nothing. Throws `PASSWORDS_HELD` while answers to attempts are being lost, or another process tries.
     */
    prove: <Value>(request: ProofRequest<Value>, signal: AbortSignal) =>
      mutex.run(request.record.trackingId, () => prove({ ...tools, ...request }, signal)),
    /** A request failed, and not by the service's own answer: it must answer one before another password is sent. */
    doubt: (service: PasswordService) => breaker.doubt(service),
    /** The service refuses a password that it accepted before: this counts as one more attempt. */
    refusedLater: (request: PasswordRequest) => refuseLater({ ...tools, ...request }),
    /**
     * Whether a further attempt would change nothing for a transfer that waits for its password. Changes nothing. Throws
     * `SECRET_UNREADABLE` if a rule's secret cannot be read.
     */
    isIdle: (request: PasswordRequest, signal: AbortSignal) => isIdle({ ...tools, ...request }, signal),
    /**
     * A mark that changes with each supplied password. `undefined` if there is no supplied password, or the service has
     * refused all of them.
     */
    async supplied({ name }: Mailbox, trackingId: string): Promise<string | undefined> {
      const marks = await Promise.all(pathsOfDrops(state, name, trackingId).map(markOf));
      const serviceId = options.coRecipients.serviceOf(name);
      const isKept = (await readKept(state, { serviceId, trackingId })) !== undefined;
      const isSupplied = isKept || marks.some((mark) => mark !== undefined);
      return isSupplied ? [...marks, isKept].join() : undefined;
    },
    /** Removes accepted passwords of transfers that have expired. */
    forgetExpired: () => forgetExpired(state, clock.now()),
    /** Removes dropped passwords of settled transfers. Passwords for transfers that are still to come stay. */
    async forgetDropped(isSettled: (drop: Drop) => Promise<boolean>): Promise<void> {
      for (const drop of await listDrops(state)) {
        if (await isSettled(drop)) await clearDrop(drop.path);
      }
    },
  };
}

/** Empty if the file is missing, damaged or cannot be read. */
async function readMemory(path: string) {
  // Without its memory, an outage may cost this process one more attempt.
  return parseAs(BreakerMemoryShape, await tryReadFile(path).catch(() => undefined)) ?? {};
}

async function prove<Value>(
  search: Search & ProofRequest<Value>,
  signal: AbortSignal,
): Promise<Proof<Value>> {
  const { state, clock, record, keepMs = Number.POSITIVE_INFINITY } = search;
  /** Why the last password was not sent; `known` if all were refused before. */
  let whyUnsent: Permission = "known";
  const notes: string[] = [];
  for await (const candidate of candidatesFor(search, signal)) {
    const { password, path, byHand } = candidate;
    if (byHand !== undefined) await search.onHandDrop?.(record, byHand);
    const slot = await takeSlot(search);
    const permission = await permit(search, candidate, slot).catch(async (error: unknown) => {
      // Nothing was sent.
      await slot?.giveBack();
      throw error;
    });
    if (permission !== "yes") {
      await slot?.giveBack();
      if (permission !== "known") whyUnsent = permission;
      notes.push(...(await passOver(search, candidate, permission)));
      continue;
    }
    const value = await attempt(search, candidate, slot, signal);
    if (value === REFUSED) {
      await forget(search, candidate);
      continue;
    }
    if (path !== undefined) {
      // The service chooses the expiry, and the operator the longest time.
      const untilMs = Math.min(expiryOf(record), clock.now() + keepMs);
      await keepPassword(state, keptKey(search), password, untilMs);
      await clearDropOf(path, password);
    }
    return { kind: "accepted", password, value };
  }
  const unusable = await whyUnusable(search);
  if (unusable !== undefined) notes.unshift(NOTES[unusable]);
  const attempts = await countSpent(search);
  const message = [explain(attempts, record, whyUnsent), ...notes].join(" ");
  return { kind: "waiting", message, obstacle: obstacleOf(attempts, unusable) };
}

const REFUSED = Symbol("refused");

/**
 * Sends a password. Throws any failure but a refusal. The slot stays taken unless the answer says that the attempt cost
 * nothing.
 */
async function attempt<Value>(
  search: Search & ProofRequest<Value>,
  candidate: Candidate,
  slot: TakenSlot | undefined,
  signal: AbortSignal,
): Promise<Value | typeof REFUSED> {
  const { password, source } = candidate;
  const { proven, breaker, unwritten, locks, record } = search;
  const key = keyOf(search);
  try {
    locks.check(search, monotonicMs());
    const value = await breaker.pass(search, () => search.send(password), signal);
    proven.set(key, password);
    await slot?.giveBack();
    return value;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const isRefused = error.code === "PASSWORD_REFUSED" || (source === "none" && isBadRequest(error));
    if (!isRefused) {
      if (error.code === "TRANSFER_LOCKED" && error.answeredBy === "service")
        locks.add(search, monotonicMs(), error.retryAfterMs);
      if (await costsNothing(error, slot)) await slot?.giveBack();
      if (error.code === "BROWSER_ONLY") await forget(search, candidate);
      throw error;
    }
    proven.delete(key);
    const fingerprint = await fingerprintOf(password, record.trackingId);
    // The disk may be full: at least this process does not send it again.
    const refusal = `${record.trackingId}\0${fingerprint}`;
    unwritten.add(refusal);
    await slot?.refused(fingerprint);
    unwritten.delete(refusal);
    search.onRefused();
    return REFUSED;
  }
}

/**
 * The password has to be proven again. The refusal counts as an attempt with a lost answer: the service accepted this
 * password before, and may have refused something else. If no slot is free, none is needed: nothing more is sent.
 */
async function refuseLater(search: Search): Promise<void> {
  search.proven.delete(keyOf(search));
  await takeSlot(search);
}

/** How a service may refuse a request without a password, though the list says that the sender chose none. */
function isBadRequest({ code, answeredBy }: Fault): boolean {
  return answeredBy === "service" && code === "BAD_REQUEST";
}

/**
 * Whether the attempt cost nothing: it was not sent, or the service's own answer says so. A deletion may be the result of
 * this attempt. So may a lock, if an earlier attempt of ours was refused or its answer was lost.
 */
async function costsNothing({ code, answeredBy }: Fault, slot: TakenSlot | undefined): Promise<boolean> {
  if (answeredBy === "unsent" || code === "PASSWORDS_HELD") return true;
  if (answeredBy !== "service" || code === "TRANSFER_DELETED") return false;
  return code !== "TRANSFER_LOCKED" || slot === undefined || (await slot.others()).spent === 0;
}

async function permit(
  search: Search,
  candidate: Candidate,
  slot: TakenSlot | undefined,
): Promise<Permission> {
  const { clock, breaker, unwritten, mailbox, service, record } = search;
  if (isProven(search, candidate)) return "yes";
  if (slot === undefined) {
    // An attempt of another process may be about to give its slot back, or has just done so.
    const { spent, allowed, pending } = await countSpent(search);
    const isYoung = (at: string) => Math.abs(clock.now() - Date.parse(at)) < LONGEST_ATTEMPT_MS;
    if (spent < allowed || pending.some(isYoung))
      throw new Fault("PASSWORDS_HELD", { detail: "another attempt is on its way" });
    return "exhausted";
  }
  const others = await othersInTime(slot, clock);
  const ours = `${record.trackingId}\0`;
  const refused = [...unwritten].filter((it) => it.startsWith(ours)).map((it) => it.slice(ours.length));
  const spent = { ...others, fingerprints: [...others.fingerprints, ...refused] };
  const permission = await mayTry(spent, candidate, record.trackingId, mailbox.passwordAttempts);
  // An earlier process, or one at another address of the service, may have lost an answer: let it answer without a password.
  if (service.ownAnswers() === 0) breaker.doubt(service);
  return permission;
}

/** Another process may be about to learn that the same password is wrong. A courtesy: the budget holds without it. */
async function othersInTime(slot: TakenSlot, clock: Clock) {
  const isYoung = (at: string) => Math.abs(clock.now() - Date.parse(at)) < MAX_WAIT_MS;
  let others = await slot.others();
  for (let waitedMs = 0; others.pending.some(isYoung) && waitedMs < MAX_WAIT_MS; waitedMs += LOOK_EVERY_MS) {
    await pause(LOOK_EVERY_MS);
    others = await slot.others();
  }
  return others;
}

function takeSlot(search: Search): Promise<TakenSlot | undefined> {
  const { attempts, clock, nameOf, mailbox, record } = search;
  const owner = { name: nameOf(record), round: record.round, at: new Date(clock.now()).toISOString() };
  return attempts.take(record.trackingId, owner, mailbox.passwordAttempts);
}

function countSpent(search: Search): Promise<CountedAttempts> {
  const { attempts, nameOf, mailbox, record } = search;
  return attempts.spent(record.trackingId, nameOf(record), mailbox.passwordAttempts);
}

function keptKey({ service, record }: PasswordRequest): KeptKey {
  return { serviceId: service.id, trackingId: record.trackingId };
}

/** A password that the service has accepted comes first: any other could only be wrong. */
async function* candidatesFor(search: Search, signal: AbortSignal): AsyncIterable<Candidate> {
  const proven = search.proven.get(keyOf(search));
  if (proven !== undefined) yield { password: proven, source: "kept" };
  const { paths } = await findDrops(search);
  const { mailbox, record } = search;
  const { sender, trackingId, subject = "" } = record;
  const readRule = async ({ password }: PasswordRule) =>
    "read" in password
      ? password.read(signal)
      : password.ask({ mailbox: mailbox.name, sender, trackingId, subject }, signal);
  yield* findCandidates(search.state, search, paths, readRule);
}

/**
 * The files that may hold a dropped password. `isAmbiguous`: several services list this tracking-id, and a file without a
 * mailbox in its name is there; it is left out.
 */
async function findDrops({ state, coRecipients, mailbox, record }: Search) {
  const { trackingId } = record;
  const paths = pathsOfDrops(state, mailbox.name, trackingId);
  const common = pathOfDrop(state, trackingId);
  const isThere = (await markOf(common)) !== undefined;
  const isAmbiguous = isThere && (await coRecipients.isElsewhere(mailbox.name, trackingId));
  return { paths: isAmbiguous ? paths.filter((path) => path !== common) : paths, isAmbiguous };
}

/** Why a dropped password is not used: its file holds none, or it is not clear which service it is for. */
async function whyUnusable(search: Search): Promise<"unusable" | "ambiguous" | undefined> {
  const { paths, isAmbiguous } = await findDrops(search);
  if (isAmbiguous) return "ambiguous";
  for (const path of paths) {
    if ((await markOf(path)) !== undefined && (await readDrop(path)) === undefined) return "unusable";
  }
  return undefined;
}

/** Removes the file of a password that the service has refused, or that can open nothing. */
async function forget(search: Search, { source, password, path }: Candidate): Promise<void> {
  if (source === "kept") await forgetKept(search.state, keptKey(search));
  if (path !== undefined) await clearDropOf(path, password);
}

/** Removes a dropped password that was refused before, or will never be sent. Returns notes for people. */
async function passOver(search: Search, candidate: Candidate, permission: Permission): Promise<string[]> {
  const isKnown = permission === "known";
  if (isKnown) await forget(search, candidate);
  if (candidate.path === undefined) return [];
  if (isKnown) return [NOTES.known];
  const isUseless = permission === "exhausted" && !(await mayBeSentLater(search));
  if (isUseless) await clearDropOf(candidate.path, candidate.password);
  return [isUseless ? NOTES.unsent : NOTES.kept];
}

/**
 * Whether a dropped password is worth keeping: another mailbox that received the transfer has an attempt left, or an
 * operator may allow one, because after a lost answer this password may be the right one.
 */
async function mayBeSentLater(search: Search): Promise<boolean> {
  const { coRecipients, mailbox, record } = search;
  const { spent, unanswered } = await countSpent(search);
  if (unanswered > 0) return true;
  const budgets = await coRecipients.openBudgets(mailbox.name, record.trackingId);
  return budgets.some((budget) => spent < budget);
}

async function isIdle(search: Search, signal: AbortSignal): Promise<boolean> {
  const { passwordAttempts } = search.mailbox;
  const { trackingId, password: before } = search.record;
  const attempts = await countSpent(search);
  for await (const candidate of candidatesFor(search, signal)) {
    // A dropped password has to be removed at least.
    if (candidate.source === "drop" || isProven(search, candidate)) return false;
    if ((await mayTry(attempts, candidate, trackingId, passwordAttempts)) === "yes") return false;
  }
  return isDeepStrictEqual(before, obstacleOf(attempts, await whyUnusable(search)));
}

/** Recorded when a search ends without a password: another search is worthwhile once it differs. */
function obstacleOf({ spent, allowed }: SpentAttempts, unusable: string | undefined): PasswordObstacle {
  return { spent, isExhausted: spent >= allowed, isUnusable: unusable !== undefined };
}

/** The service has accepted the password before: it is no guess, and needs no slot. */
function isProven(search: Search, { password }: Candidate): boolean {
  return search.proven.get(keyOf(search))?.reveal() === password.reveal();
}
