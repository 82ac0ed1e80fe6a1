/** Tries passwords one after the other, within the budget, and leaves the receipt true whatever happens. */
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import type { Receipt } from "../model/receipt.ts";
import type { Candidate, Candidates } from "./candidates.ts";
import { explain, NOTES } from "./explain.ts";
import { accept, giveBack, mayTry, type Permission, refuse, type Spent, spend, sumOf } from "./guard.ts";
import type { Fellows, Proof, ProofRequest, WaitingRequest } from "./port.ts";
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

export interface ProofTools {
  readonly candidates: Candidates;
  readonly proven: Proven;
  readonly fellows: Fellows;
}

export async function prove<Value>(
  { candidates, proven, fellows }: ProofTools,
  request: ProofRequest<Value>,
  signal: AbortSignal,
): Promise<Proof<Value>> {
  const { mailbox, query, save, send } = request;
  const { name, passwordAttempts: budget } = mailbox;
  let { receipt } = request;
  let obstacle: Permission = "known";
  const notes: string[] = [];
  const lookAround = async () => sumOf(receipt, await fellows.spentOn(name, query.trackingId));
  for await (const candidate of inOrder(candidates, proven, request, signal)) {
    const isProven = proven.has(name, query.trackingId, candidate.password);
    const spent = await lookAround();
    const permission = isProven ? "yes" : await mayTry(spent, candidate, budget);
    if (permission !== "yes") {
      if (permission !== "known") obstacle = permission;
      notes.push(...(await passOver(candidates, request, candidate, permission, spent)));
      continue;
    }
    signal.throwIfAborted();
    receipt = spend(receipt);
    await save(receipt);
    // Of two processes that spend the last attempt at the same moment at least one sees the other here.
    if (!isProven && (await lookAround()).refusedPasswords > budget) {
      await save(giveBack(receipt));
      throw new Fault("ATTEMPT_ELSEWHERE", { detail: query.trackingId });
    }
    try {
      const value = await send(candidate.password);
      proven.add(name, query.trackingId, candidate.password);
      receipt = accept(receipt);
      await save(receipt);
      await candidates.accepted(mailbox, query, candidate);
      return { kind: "accepted", password: candidate.password, value, receipt };
    } catch (error) {
      const onRefused = () => proven.forgetAll(name, query.trackingId);
      receipt = await afterFailure(error, candidate, receipt, save, onRefused);
      await candidates.refused(query, candidate);
    }
  }
  if (await candidates.isUnusable(query.trackingId)) notes.unshift(NOTES.unusable);
  const spent = await lookAround();
  const message = [explain(spent, obstacle, budget), ...notes].join(" ");
  return { kind: "waiting", message, noAttemptsLeft: spent.refusedPasswords >= budget, receipt };
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

/** What was dropped goes where nobody could use it. Returns what is to be told of it. */
async function passOver(
  candidates: Candidates,
  { mailbox, query }: WaitingRequest,
  candidate: Candidate,
  permission: Permission,
  { refusedPasswords }: Spent,
): Promise<string[]> {
  if (permission === "known") await candidates.refused(query, candidate);
  if (permission === "exhausted") await candidates.unsent(mailbox, query, candidate, refusedPasswords);
  if (candidate.origin !== "drop") return [];
  return [permission === "known" ? NOTES.known : NOTES.unsent];
}

/** Returns where the password was refused and the next may be tried; throws everything else. */
async function afterFailure(
  error: unknown,
  candidate: Candidate,
  receipt: Receipt,
  save: (receipt: Receipt) => Promise<void>,
  onRefused: () => void,
): Promise<Receipt> {
  if (error instanceof Fault && error.code === "PASSWORD_REFUSED") {
    onRefused();
    const refused = await refuse(receipt, candidate.password);
    await save(refused);
    return refused;
  }
  if (error instanceof Fault && COSTS_NOTHING.has(error.code)) await save(giveBack(receipt));
  throw error;
}
