/** Opens the passwords below a state folder. */
import { openCandidates } from "./candidates.ts";
import type { Passwords } from "./port.ts";
import { prove } from "./prove.ts";

export async function openPasswords(state: string): Promise<Passwords> {
  const candidates = await openCandidates(state);
  return {
    prove: (request, signal) => prove(candidates, request, signal),
    isDropped: candidates.isDropped,
    settled: candidates.settled,
    forgetOthers: candidates.forgetOthers,
  };
}
