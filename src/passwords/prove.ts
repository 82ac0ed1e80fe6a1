/** Tries passwords one after the other, each in a slot of the budget that is taken before it is sent. */
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import type { AttemptSlots, SpentAttempts, TakenSlot } from "../model/attempts.ts";
import type { TransferKey } from "../model/record.ts";
import type { Candidate, Candidates } from "./candidates.ts";
import { explain, NOTES } from "./explain.ts";
import { fingerprintOf, mayTry, type Permission } from "./guard.ts";
import type { Proof, ProofRequest, WaitingRequest } from "./port.ts";
import type { Proven } from "./proven.ts";

/** An answer came and was not about the password, or nothing was sent: the attempt cost nothing. */
const COSTS_NOTHING: ReadonlySet<FaultCode> = new Set([
  "SERVICE_UNREACHABLE",
  "TLS_REFUSED",
  "PROXY_REFUSED",
  "REDIRECT_REFUSED",
  "PASSWORD_UNUSABLE",
  "RATE_LIMITED",
  "SERVER_FAULT",
  "NOT_SUPPORTED",
  "BAD_REQUEST",
  "BAD_ANSWER",
  "ANSWER_TOO_LARGE",
  "NOT_LICENSED",
  "POLICY_REFUSED",
  "API_VERSION",
  "NO_SUCH_ENDPOINT",
  "NOT_FOUND",
]);

/** For the answer to an attempt of another process. */
const MOST_WAIT_MS = 3_000;
const LOOK_EVERY_MS = 100;

export interface ProofTools {
  readonly candidates: Candidates;
  readonly proven: Proven;
  readonly attempts: AttemptSlots;
  readonly clock: Clock;
  nameOf(key: TransferKey): string;
}

export async function prove<Value>(
  tools: ProofTools,
  request: ProofRequest<Value>,
  signal: AbortSignal,
): Promise<Proof<Value>> {
  const { candidates, proven } = tools;
  const { mailbox, query } = request;
  let obstacle: Permission = "known";
  const notes: string[] = [];
  for await (const candidate of inOrder(candidates, proven, request, signal)) {
    const slot = await takeSlot(tools, request);
    const permission = await permit(tools, request, candidate, slot);
    if (permission !== "yes") {
      await slot?.giveBack();
      if (permission !== "known") obstacle = permission;
      notes.push(...(await passOver(tools, request, candidate, permission)));
      continue;
    }
    const value = await attempt(tools, request, candidate, slot, signal);
    if (value === REFUSED) {
      await candidates.refused(query, candidate);
      continue;
    }
    await candidates.accepted(mailbox, query, candidate);
    return { kind: "accepted", password: candidate.password, value };
  }
  const isUnusable = await candidates.isUnusable(query.trackingId);
  if (isUnusable) notes.unshift(NOTES.unusable);
  const spent = await countSpent(tools, request);
  const message = [explain(spent, query.trackingId, obstacle, mailbox.passwordAttempts), ...notes].join(" ");
  const isExhausted = spent.spent >= mailbox.passwordAttempts;
  return { kind: "waiting", message, obstacle: { spent: spent.spent, isExhausted, isUnusable } };
}

const REFUSED = Symbol("refused");

/** Throws everything but a refusal. The slot stays unless the answer says that the attempt cost nothing. */
async function attempt<Value>(
  { proven }: ProofTools,
  { mailbox, query, send, onRefused }: ProofRequest<Value>,
  { password }: Candidate,
  slot: TakenSlot | undefined,
  signal: AbortSignal,
): Promise<Value | typeof REFUSED> {
  const { trackingId } = query;
  if (signal.aborted) {
    await slot?.giveBack();
    throw new Fault("STOPPED");
  }
  try {
    const value = await send(password);
    proven.add(mailbox.name, trackingId, password);
    await slot?.giveBack();
    return value;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (COSTS_NOTHING.has(error.code)) await slot?.giveBack();
    if (error.code !== "PASSWORD_REFUSED") throw error;
    proven.forgetAll(mailbox.name, trackingId);
    await slot?.refused(await fingerprintOf(password, trackingId));
    onRefused();
    return REFUSED;
  }
}

/** A password that the service has accepted is no guess: it may be sent also where no slot is left. */
async function permit<Value>(
  { proven }: ProofTools,
  { mailbox, query, askHarmlessly }: ProofRequest<Value>,
  candidate: Candidate,
  slot: TakenSlot | undefined,
): Promise<Permission> {
  if (proven.has(mailbox.name, query.trackingId, candidate.password)) return "yes";
  if (slot === undefined) return "exhausted";
  const others = await othersInTime(slot);
  const permission = await mayTry(others, candidate, query.trackingId, mailbox.passwordAttempts);
  // While answers get lost, another attempt would be lost too.
  if (permission === "yes" && others.unanswered > 0) await askHarmlessly();
  return permission;
}

/** Another process may be about to learn that the same password is wrong: a courtesy, the budget holds without it. */
async function othersInTime(slot: TakenSlot) {
  let others = await slot.others();
  for (let waitedMs = 0; others.pending > 0 && waitedMs < MOST_WAIT_MS; waitedMs += LOOK_EVERY_MS) {
    await pause(LOOK_EVERY_MS);
    others = await slot.others();
  }
  return others;
}

function takeSlot({ attempts, clock, nameOf }: ProofTools, request: WaitingRequest) {
  const { mailbox, origin, record } = request;
  const { trackingId, round } = record;
  const owner = { name: nameOf(record), round, at: new Date(clock.now()).toISOString() };
  return attempts.take({ origin, trackingId }, owner, mailbox.passwordAttempts);
}

export function countSpent(
  { attempts, nameOf }: Pick<ProofTools, "attempts" | "nameOf">,
  {
    mailbox,
    origin,
    record,
  }: Pick<WaitingRequest, "origin" | "record"> & {
    readonly mailbox: { readonly passwordAttempts: number };
  },
): Promise<SpentAttempts> {
  const { trackingId } = record;
  return attempts.spent({ origin, trackingId }, nameOf(record), mailbox.passwordAttempts);
}

/** What the service has just accepted before anything else: another one could only be wrong. */
async function* inOrder(
  candidates: Candidates,
  proven: Proven,
  { mailbox, query }: WaitingRequest,
  signal: AbortSignal,
): AsyncIterable<Candidate> {
  const password = proven.of(mailbox.name, query.trackingId);
  if (password !== undefined) yield { password, origin: "kept" };
  yield* candidates.find(mailbox, query, signal);
}

/** Removes a dropped password that nobody could use. Returns what people should know about it. */
async function passOver(
  tools: ProofTools,
  request: WaitingRequest,
  candidate: Candidate,
  permission: Permission,
): Promise<string[]> {
  const { candidates } = tools;
  const { mailbox, query } = request;
  if (permission === "known") await candidates.refused(query, candidate);
  if (permission === "exhausted") {
    const { spent } = await countSpent(tools, request);
    await candidates.unsent(mailbox, query, candidate, spent);
  }
  if (candidate.origin !== "drop") return [];
  return [permission === "known" ? NOTES.known : NOTES.unsent];
}
