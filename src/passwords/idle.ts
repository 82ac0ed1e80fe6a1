/** Whether trying again would change anything for a transfer that waits for its password. */
import { explain, NOTES } from "./explain.ts";
import { mayTry, type Permission, sumOf } from "./guard.ts";
import type { WaitingRequest } from "./port.ts";
import type { ProofTools } from "./prove.ts";

/** Nothing is sent, and nothing is changed. */
export async function isIdle(
  { candidates, proven, fellows }: ProofTools,
  { mailbox, query, receipt }: WaitingRequest,
  signal: AbortSignal,
): Promise<boolean> {
  const { name, passwordAttempts: budget } = mailbox;
  const spent = sumOf(receipt, await fellows.spentOn(name, query.trackingId));
  let obstacle: Permission = "known";
  for await (const candidate of candidates.find(mailbox, query, signal)) {
    const isProven = proven.has(name, query.trackingId, candidate.password);
    const permission = isProven ? "yes" : await mayTry(spent, candidate, budget);
    // One that was dropped is at least to be taken away.
    if (permission === "yes" || candidate.origin === "drop") return false;
    if (permission !== "known") obstacle = permission;
  }
  const note = (await candidates.isUnusable(query.trackingId)) ? ` ${NOTES.unusable}` : "";
  return receipt.message?.startsWith(`${explain(spent, obstacle, budget)}${note}`) === true;
}
