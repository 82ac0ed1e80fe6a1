/** Tries passwords one after the other. Each takes a slot of the budget before it is sent. */

import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/faults.ts";
import { pause } from "../base/timers.ts";
import type { AttemptSlots, SpentAttempts, TakenSlot } from "../model/attempts.ts";
import type { TransferKey, TransferRecord } from "../model/record.ts";
import type { Breaker } from "./breaker.ts";
import type { Candidate, Candidates } from "./candidates.ts";
import type { HandDrop } from "./dropped.ts";
import { explain, fingerprintOf, mayTry, NOTES, type Permission } from "./guard.ts";
import type { LockedTransfers, Proven, UnwrittenRefusals } from "./memory.ts";
import type { PasswordRequest, Proof, ProofRequest } from "./port.ts";

/** How long to wait for the answer to an attempt of another process. */
const MAX_WAIT_MS = 3_000;
const LOOK_EVERY_MS = 100;

export interface ProofTools {
  readonly candidates: Candidates;
  readonly proven: Proven;
  readonly breaker: Breaker;
  readonly unwritten: UnwrittenRefusals;
  readonly locks: LockedTransfers;
  readonly attempts: AttemptSlots;
  readonly clock: Clock;
  nameOf(key: TransferKey): string;
  /** Records a password that was put into the drop folder by hand, before it is used. May be called twice. */
  onHandDrop?(record: TransferRecord, drop: HandDrop): Promise<void>;
}

export async function prove<Value>(
  tools: ProofTools,
  request: ProofRequest<Value>,
  signal: AbortSignal,
): Promise<Proof<Value>> {
  const { candidates, clock } = tools;
  let obstacle: Permission = "known";
  const notes: string[] = [];
  for await (const candidate of inOrder(tools, request, signal)) {
    if (candidate.byHand !== undefined) await tools.onHandDrop?.(request.record, candidate.byHand);
    const slot = await takeSlot(tools, request);
    const permission = await permit(tools, request, candidate, slot).catch(async (error: unknown) => {
      // Nothing was sent.
      await slot?.giveBack();
      throw error;
    });
    if (permission !== "yes") {
      await slot?.giveBack();
      if (permission !== "known") obstacle = permission;
      notes.push(...(await passOver(tools, request, candidate, permission)));
      continue;
    }
    const value = await attempt(tools, request, candidate, slot, signal);
    if (value === REFUSED) {
      await candidates.refused(request, candidate);
      continue;
    }
    await candidates.accepted(request, candidate, clock.now());
    return { kind: "accepted", password: candidate.password, value };
  }
  const isUnusable = await candidates.isUnusable(request);
  if (isUnusable) notes.unshift((await candidates.isAmbiguous(request)) ? NOTES.ambiguous : NOTES.unusable);
  const spent = await countSpent(tools, request);
  const message = [explain(spent, request.record, obstacle), ...notes].join(" ");
  const isExhausted = spent.spent >= spent.allowed;
  return { kind: "waiting", message, obstacle: { spent: spent.spent, isExhausted, isUnusable } };
}

const REFUSED = Symbol("refused");

/** Throws any failure but a refusal. The slot stays taken unless the answer says that the attempt cost nothing. */
async function attempt<Value>(
  { proven, breaker, unwritten, locks, clock }: ProofTools,
  request: ProofRequest<Value>,
  { password, source }: Candidate,
  slot: TakenSlot | undefined,
  signal: AbortSignal,
): Promise<Value | typeof REFUSED> {
  const { mailbox, query, send, onRefused } = request;
  const { trackingId } = query;
  try {
    locks.check(request, clock.now());
    const value = await breaker.pass(request, () => send(password), signal);
    proven.add(mailbox.name, trackingId, password);
    await slot?.giveBack();
    return value;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const isRefused = error.code === "PASSWORD_REFUSED" || (source === "none" && isBadRequest(error));
    if (!isRefused) {
      if (error.code === "TRANSFER_LOCKED" && error.answeredBy === "service")
        locks.add(request, clock.now(), error.retryAfterMs);
      if (await costsNothing(error, slot)) await slot?.giveBack();
      throw error;
    }
    proven.forgetAll(mailbox.name, trackingId);
    const fingerprint = await fingerprintOf(password, trackingId);
    // The disk may be full: at least this process does not send it again.
    unwritten.add(request, fingerprint);
    await slot?.refused(fingerprint);
    unwritten.delete(request, fingerprint);
    onRefused();
    return REFUSED;
  }
}

/**
 * The password has to be proven again. The refusal counts as an attempt with a lost answer: the service accepted this
 * password before, and the same status may refuse something else. Without a free slot no password is sent anyway.
 */
export async function refuseLater(tools: ProofTools, request: PasswordRequest): Promise<void> {
  tools.proven.forgetAll(request.mailbox.name, request.query.trackingId);
  await takeSlot(tools, request);
}

/** How a service may refuse a request without a password, though the list says that the sender chose none. */
function isBadRequest({ code, answeredBy }: Fault): boolean {
  return answeredBy === "service" && code === "BAD_REQUEST";
}

/**
 * Whether the attempt cost nothing. Only the service's own answer says so. A deleted transfer may be its verdict on this
 * attempt. So may a lock, if an earlier attempt of ours was refused or has an unknown verdict.
 */
async function costsNothing({ code, answeredBy }: Fault, slot: TakenSlot | undefined): Promise<boolean> {
  if (answeredBy === "unsent" || code === "PASSWORDS_HELD") return true;
  if (answeredBy !== "service" || code === "TRANSFER_DELETED") return false;
  return code !== "TRANSFER_LOCKED" || slot === undefined || (await slot.others()).spent === 0;
}

/** A password that the service has accepted before is no guess: it needs no slot. */
async function permit<Value>(
  { proven, clock, breaker, unwritten }: ProofTools,
  request: ProofRequest<Value>,
  candidate: Candidate,
  slot: TakenSlot | undefined,
): Promise<Permission> {
  const { mailbox, query } = request;
  if (proven.has(mailbox.name, query.trackingId, candidate.password)) return "yes";
  if (slot === undefined) return "exhausted";
  const others = await othersInTime(slot, clock);
  const fingerprints = [...others.fingerprints, ...unwritten.of(request)];
  const permission = await mayTry(
    { ...others, fingerprints },
    candidate,
    query.trackingId,
    mailbox.passwordAttempts,
  );
  // An earlier process may have lost an answer: this attempt could be lost too.
  if (others.unanswered > 0 && request.ownAnswers() === 0) breaker.doubt(request);
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

function takeSlot({ attempts, clock, nameOf }: ProofTools, request: PasswordRequest) {
  const { mailbox, serviceId, record } = request;
  const { trackingId, round } = record;
  const owner = { name: nameOf(record), round, at: new Date(clock.now()).toISOString() };
  return attempts.take({ serviceId, trackingId }, owner, mailbox.passwordAttempts);
}

function countSpent({ attempts, nameOf }: ProofTools, request: PasswordRequest): Promise<SpentAttempts> {
  const { mailbox, serviceId, record } = request;
  const { trackingId } = record;
  return attempts.spent({ serviceId, trackingId }, nameOf(record), mailbox.passwordAttempts);
}

/** A password that the service has accepted comes first: any other could only be wrong. */
async function* inOrder(
  { candidates, proven }: ProofTools,
  request: PasswordRequest,
  signal: AbortSignal,
): AsyncIterable<Candidate> {
  const password = proven.of(request.mailbox.name, request.query.trackingId);
  if (password !== undefined) yield { password, source: "kept" };
  yield* candidates.find(request, signal);
}

/** Removes a dropped password that was refused before, or is not sent. Returns notes for people. */
async function passOver(
  tools: ProofTools,
  request: PasswordRequest,
  candidate: Candidate,
  permission: Permission,
): Promise<string[]> {
  const { candidates } = tools;
  if (permission === "known") await candidates.refused(request, candidate);
  const isRemoved =
    permission === "exhausted" &&
    (await candidates.removeUnsent(request, candidate, await countSpent(tools, request)));
  if (candidate.source !== "drop") return [];
  if (permission === "known") return [NOTES.known];
  return [isRemoved ? NOTES.unsent : NOTES.kept];
}

/** As `Passwords.isIdle`. */
export async function isIdle(
  tools: ProofTools,
  request: PasswordRequest,
  signal: AbortSignal,
): Promise<boolean> {
  const { candidates, proven } = tools;
  const { mailbox, query, record } = request;
  const { passwordAttempts: budget } = mailbox;
  const spent = await countSpent(tools, request);
  for await (const candidate of candidates.find(request, signal)) {
    const isProven = proven.has(mailbox.name, query.trackingId, candidate.password);
    const permission = isProven ? "yes" : await mayTry(spent, candidate, query.trackingId, budget);
    // A dropped password has to be removed at least.
    if (permission === "yes" || candidate.source === "drop") return false;
  }
  const { password } = record;
  return (
    password !== undefined &&
    password.spent === spent.spent &&
    password.isExhausted === spent.spent >= spent.allowed &&
    password.isUnusable === (await candidates.isUnusable(request))
  );
}
