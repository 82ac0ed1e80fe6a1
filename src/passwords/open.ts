/** Opens the passwords below a state folder. */
import { Turns } from "../base/turns.ts";
import { Breaker } from "./breaker.ts";
import { Candidates } from "./candidates.ts";
import { isIdle } from "./idle.ts";
import type { CoRecipients, Passwords } from "./port.ts";
import { type ProofTools, prove, refuseLater, UnwrittenRefusals } from "./prove.ts";
import { Proven } from "./proven.ts";

export interface PasswordsOptions extends Pick<ProofTools, "attempts" | "clock" | "nameOf"> {
  readonly state: string;
  readonly coRecipients: CoRecipients;
}

export async function openPasswords(options: PasswordsOptions): Promise<Passwords> {
  const { state, clock, coRecipients } = options;
  const candidates = await Candidates.open(state, clock.now(), coRecipients);
  const proven = new Proven(coRecipients);
  const breaker = new Breaker(clock);
  const unwritten = new UnwrittenRefusals();
  const tools: ProofTools = { ...options, candidates, proven, breaker, unwritten };
  // One mailbox at a time: what one of them is refused, the next one knows.
  const turns = new Turns();
  return {
    prove: (request, signal) =>
      turns.take(`${request.origin}\0${request.query.trackingId}`, () => prove(tools, request, signal)),
    doubt: (goal) => breaker.doubt(goal),
    refusedLater: (request, password) => refuseLater(tools, request, password),
    isIdle: (request, signal) => isIdle(tools, request, signal),
    supplied: (mailbox, trackingId) => candidates.supplied(mailbox, trackingId),
    settled: (mailbox, trackingId) => proven.forget(mailbox.name, trackingId),
    forgetExpired: () => candidates.forgetExpired(clock.now()),
    forgetDropped: (isSettled) => candidates.forgetDropped(isSettled),
  };
}
