/** Tries passwords one after the other. Each takes a slot of the budget before it is sent. */
import { join } from "node:path";
import * as v from "valibot";
import type { Clock } from "../base/clock.ts";
import { KeyedMutex } from "../base/concurrency.ts";
import { systemDisk, tryRead } from "../base/disk.ts";
import { replaceDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { pause } from "../base/timers.ts";
import type { AttemptSlots, SpentAttempts, TakenSlot } from "../model/attempts.ts";
import type { TransferKey, TransferRecord } from "../model/record.ts";
import { Breaker, type BreakerMemory } from "./breaker.ts";
import { type Candidate, Candidates } from "./candidates.ts";
import { explain, fingerprintOf, mayTry, NOTES, type Permission } from "./guard.ts";
import { keyOf, LockedTransfers, Proven } from "./memory.ts";
import type { CoRecipients, PasswordRequest, Passwords, Proof, ProofRequest } from "./port.ts";
import { clearDrop, forgetExpired, type HandDrop, listDrops, openStored } from "./stored.ts";

/** How long to wait for the answer to an attempt of another process. */
const MAX_WAIT_MS = 3_000;
const LOOK_EVERY_MS = 100;

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
  readonly candidates: Candidates;
  readonly proven: Proven;
  readonly breaker: Breaker;
  /** Refused passwords that could not be written to the disk: `keyOf` with the fingerprint. */
  readonly unwritten: Set<string>;
  readonly locks: LockedTransfers;
}

/** Opens the passwords of a state folder. */
export async function openPasswords(options: PasswordsOptions): Promise<Passwords> {
  const { state, clock, coRecipients, keepMs = Number.POSITIVE_INFINITY } = options;
  await openStored(state, clock.now());
  const candidates = new Candidates(state, coRecipients, keepMs);
  const proven = new Proven(coRecipients);
  const memory = join(state, "held.json");
  const breaker = new Breaker(clock, await readMemory(memory), (held) =>
    replaceDurably(memory, JSON.stringify(held), 0o600),
  );
  const unwritten = new Set<string>();
  const tools = { ...options, candidates, proven, breaker, unwritten, locks: new LockedTransfers() };
  // One mailbox at a time for each transfer: the next one knows which password was refused.
  const mutex = new KeyedMutex();
  return {
    prove: (request, signal) => mutex.run(keyOf(request), () => prove(tools, request, signal)),
    doubt: (service) => breaker.doubt(service),
    refusedLater: (request) => refuseLater(tools, request),
    isIdle: (request, signal) => isIdle(tools, request, signal),
    supplied: ({ name }, trackingId) => candidates.supplied(name, trackingId),
    settled: ({ name }, trackingId) => proven.forget(name, trackingId),
    forgetExpired: () => forgetExpired(state, clock.now()),
    async forgetDropped(isSettled) {
      for (const drop of await listDrops(state)) {
        if (await isSettled(drop)) await clearDrop(drop.path);
      }
    },
  };
}

const MemoryShape = v.record(v.string(), v.object({ failures: v.number(), untilMs: v.number() }));

/** Empty if the file cannot be read. */
async function readMemory(path: string): Promise<BreakerMemory> {
  try {
    return v.parse(MemoryShape, JSON.parse((await tryRead(systemDisk, path)) ?? "{}"));
  } catch {
    return {};
  }
}

async function prove<Value>(
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
  const unusable = await candidates.whyUnusable(request);
  if (unusable !== undefined) notes.unshift(NOTES[unusable]);
  const spent = await countSpent(tools, request);
  const message = [explain(spent, request.record, obstacle), ...notes].join(" ");
  const isExhausted = spent.spent >= spent.allowed;
  const isUnusable = unusable !== undefined;
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
  const { mailbox, record, send, onRefused } = request;
  const { trackingId } = record;
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
    const refusal = `${keyOf(request)}\0${fingerprint}`;
    unwritten.add(refusal);
    await slot?.refused(fingerprint);
    unwritten.delete(refusal);
    onRefused();
    return REFUSED;
  }
}

/**
 * The password has to be proven again. The refusal counts as an attempt with a lost answer: the service accepted this
 * password before, and the same status may refuse something else. Without a free slot no password is sent anyway.
 */
async function refuseLater(tools: ProofTools, request: PasswordRequest): Promise<void> {
  tools.proven.forgetAll(request.mailbox.name, request.record.trackingId);
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
  const { mailbox, service, record } = request;
  const { trackingId } = record;
  if (proven.has(mailbox.name, trackingId, candidate.password)) return "yes";
  if (slot === undefined) return "exhausted";
  const others = await othersInTime(slot, clock);
  const ours = `${keyOf(request)}\0`;
  const refused = [...unwritten].filter((it) => it.startsWith(ours)).map((it) => it.slice(ours.length));
  const fingerprints = [...others.fingerprints, ...refused];
  const spent = { ...others, fingerprints };
  const permission = await mayTry(spent, candidate, trackingId, mailbox.passwordAttempts);
  // An earlier process may have lost an answer: this attempt could be lost too.
  if (others.unanswered > 0 && service.ownAnswers() === 0) breaker.doubt(service);
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
  const { mailbox, service, record } = request;
  const { trackingId, round } = record;
  const owner = { name: nameOf(record), round, at: new Date(clock.now()).toISOString() };
  return attempts.take({ serviceId: service.id, trackingId }, owner, mailbox.passwordAttempts);
}

function countSpent({ attempts, nameOf }: ProofTools, request: PasswordRequest): Promise<SpentAttempts> {
  const { mailbox, service, record } = request;
  const key = { serviceId: service.id, trackingId: record.trackingId };
  return attempts.spent(key, nameOf(record), mailbox.passwordAttempts);
}

/** A password that the service has accepted comes first: any other could only be wrong. */
async function* inOrder(
  { candidates, proven }: ProofTools,
  request: PasswordRequest,
  signal: AbortSignal,
): AsyncIterable<Candidate> {
  const password = proven.of(request.mailbox.name, request.record.trackingId);
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
async function isIdle(tools: ProofTools, request: PasswordRequest, signal: AbortSignal): Promise<boolean> {
  const { candidates, proven } = tools;
  const { name, passwordAttempts } = request.mailbox;
  const { trackingId, password } = request.record;
  const spent = await countSpent(tools, request);
  for await (const candidate of candidates.find(request, signal)) {
    const isProven = proven.has(name, trackingId, candidate.password);
    const permission = isProven ? "yes" : await mayTry(spent, candidate, trackingId, passwordAttempts);
    // A dropped password has to be removed at least.
    if (permission === "yes" || candidate.source === "drop") return false;
  }
  return (
    password !== undefined &&
    password.spent === spent.spent &&
    password.isExhausted === spent.spent >= spent.allowed &&
    password.isUnusable === ((await candidates.whyUnusable(request)) !== undefined)
  );
}
