/** Opens the passwords below a state folder. */
import { openCandidates } from "./candidates.ts";
import type { Passwords } from "./port.ts";
import { Proven, prove } from "./prove.ts";

export async function openPasswords(state: string, nowMs: number): Promise<Passwords> {
  const candidates = await openCandidates(state, nowMs);
  const proven = new Proven();
  return {
    prove: (request, signal) => prove(candidates, proven, request, signal),
    isDropped: candidates.isDropped,
    async settled(mailbox, trackingId) {
      proven.forget(mailbox.name, trackingId);
      await candidates.settled(mailbox, trackingId);
    },
    forgetOthers: candidates.forgetOthers,
  };
}
