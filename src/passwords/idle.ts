/** Whether trying again would change anything for a transfer that waits for its password. */
import { mayTry } from "./guard.ts";
import type { WaitingRequest } from "./port.ts";
import { countSpent, type ProofTools } from "./prove.ts";

/** Sends nothing, and changes nothing. */
export async function isIdle(
  tools: ProofTools,
  request: WaitingRequest,
  signal: AbortSignal,
): Promise<boolean> {
  const { candidates, proven } = tools;
  const { mailbox, query, record } = request;
  const { passwordAttempts: budget } = mailbox;
  const spent = await countSpent(tools, request);
  for await (const candidate of candidates.find(request, signal)) {
    const isProven = proven.has(mailbox.name, query.trackingId, candidate.password);
    const permission = isProven ? "yes" : await mayTry(spent, candidate, query.trackingId, budget);
    // A dropped one has to be removed at least.
    if (permission === "yes" || candidate.origin === "drop") return false;
  }
  const { password } = record;
  return (
    password !== undefined &&
    password.spent === spent.spent &&
    password.isExhausted === spent.spent >= spent.allowed &&
    password.isUnusable === (await candidates.isUnusable(request))
  );
}
