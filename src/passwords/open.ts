/** Opens the passwords below a state folder. */
import { openCandidates } from "./candidates.ts";
import { isIdle } from "./idle.ts";
import type { Fellows, Passwords } from "./port.ts";
import { prove } from "./prove.ts";
import { Proven } from "./proven.ts";
import { openAttemptTurns } from "./turns.ts";

export interface PasswordsOptions {
  readonly state: string;
  readonly nowMs: number;
  readonly fellows: Fellows;
  /** Where processes that share the work tell each other whose turn it is; missing where there is only this one. */
  readonly sharedTurns: string | undefined;
}

export async function openPasswords(options: PasswordsOptions): Promise<Passwords> {
  const { state, nowMs, fellows, sharedTurns } = options;
  const candidates = await openCandidates(state, nowMs, fellows);
  const turns = await openAttemptTurns(sharedTurns);
  const proven = new Proven(fellows);
  const tools = { candidates, proven, fellows };
  return {
    prove: (request, signal) =>
      turns.take(request.query.trackingId, signal, () => prove(tools, request, signal)),
    isIdle: (request, signal) => isIdle(tools, request, signal),
    supplied: candidates.supplied,
    async settled(mailbox, trackingId) {
      proven.forget(mailbox.name, trackingId);
      await candidates.settled(mailbox, trackingId);
    },
    forgetOthers: candidates.forgetOthers,
    forgetDropped: candidates.forgetDropped,
  };
}
