/** Tries passwords one after the other, within the budget, and leaves the receipt true whatever happens. */
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import { commandFor } from "../model/order.ts";
import type { Receipt } from "../model/receipt.ts";
import type { Candidate, Candidates } from "./candidates.ts";
import { accept, giveBack, mayTry, type Permission, refuse, type Spent, spend, sumOf } from "./guard.ts";
import type { Fellows, Proof, ProofRequest } from "./port.ts";
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

interface ProofTools {
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
  const lookAround = async () => sumOf(receipt, await fellows.spentOn(name, query.trackingId));
  for await (const candidate of candidates.find(mailbox, query, signal)) {
    const isProven = proven.has(name, query.trackingId, candidate.password);
    const permission = isProven ? "yes" : await mayTry(await lookAround(), candidate, budget);
    if (permission !== "yes") {
      if (permission === "known") await candidates.refused(query, candidate);
      else obstacle = permission;
      continue;
    }
    if (signal.aborted) throw new Fault("STOPPED");
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
      if (error instanceof Fault && error.code === "PASSWORD_REFUSED") {
        proven.forgetAll(name, query.trackingId);
      }
      receipt = await afterFailure(error, candidate, receipt, save);
      await candidates.refused(query, candidate);
    }
  }
  return { kind: "waiting", message: explain(await lookAround(), obstacle, budget), receipt };
}

/** Returns where the password was refused and the next may be tried; throws everything else. */
async function afterFailure(
  error: unknown,
  candidate: Candidate,
  receipt: Receipt,
  save: (receipt: Receipt) => Promise<void>,
): Promise<Receipt> {
  if (error instanceof Fault && error.code === "PASSWORD_REFUSED") {
    const refused = await refuse(receipt, candidate.password);
    await save(refused);
    return refused;
  }
  if (error instanceof Fault && COSTS_NOTHING.has(error.code)) await save(giveBack(receipt));
  throw error;
}

function explain(spent: Spent, obstacle: Permission, budget: number): string {
  const { refusedPasswords, trackingId } = spent;
  const supply = commandFor("password", trackingId);
  if (refusedPasswords === 0) return `No password is known for it: supply it with ${supply}, or add a rule.`;
  const refused = describeSpent(spent);
  if (obstacle === "exhausted" || refusedPasswords >= budget) {
    return `${refused}, which is all that passwordAttempts allows: ask the sender, then raise it for this mailbox.`;
  }
  return `${refused}: ask the sender for the right one and supply it with ${supply}.`;
}

/** What was refused, and what nobody knows the answer to: the connection, the disk or the power failed. */
function describeSpent({ refusedFingerprints, unansweredPasswords, isShared }: Spent): string {
  const many = (count: number, one: string, more: string) =>
    count === 0 ? [] : [count === 1 ? one : `${count} ${more}`];
  const parts = [
    ...many(refusedFingerprints.length, "one password was refused", "passwords were refused"),
    ...many(
      unansweredPasswords,
      "the answer to one attempt was lost",
      "attempts had an answer that was lost",
    ),
  ];
  const text = parts.join(", and ");
  const where = isShared ? ", over all mailboxes that received it" : "";
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${where}`;
}
