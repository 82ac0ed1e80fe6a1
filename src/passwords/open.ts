/** Opens the passwords of a state folder. */
import { join } from "node:path";
import * as v from "valibot";
import { KeyedMutex } from "../base/concurrency.ts";
import { systemDisk, tryRead } from "../base/disk.ts";
import { replaceDurably } from "../base/durable.ts";
import { Breaker, type BreakerMemory } from "./breaker.ts";
import { Candidates } from "./candidates.ts";
import { LockedTransfers, Proven, UnwrittenRefusals } from "./memory.ts";
import type { CoRecipients, Passwords } from "./port.ts";
import { isIdle, type ProofTools, prove, refuseLater } from "./prove.ts";

export interface PasswordsOptions extends Pick<ProofTools, "attempts" | "clock" | "nameOf" | "onHandDrop"> {
  readonly state: string;
  readonly coRecipients: CoRecipients;
  /** How long an accepted password is kept that a person supplied; `undefined`: until the transfer expires. */
  readonly keepMs: number | undefined;
}

export async function openPasswords(options: PasswordsOptions): Promise<Passwords> {
  const { state, clock, coRecipients, keepMs = Number.POSITIVE_INFINITY } = options;
  const candidates = await Candidates.open(state, clock.now(), coRecipients, keepMs);
  const proven = new Proven(coRecipients);
  const memory = join(state, "held.json");
  const breaker = new Breaker(clock, await readMemory(memory), (held) =>
    replaceDurably(memory, JSON.stringify(held), 0o600),
  );
  const unwritten = new UnwrittenRefusals();
  const tools: ProofTools = {
    ...options,
    candidates,
    proven,
    breaker,
    unwritten,
    locks: new LockedTransfers(),
  };
  // One mailbox at a time for each transfer: the next one knows which password was refused.
  const mutex = new KeyedMutex();
  return {
    prove: (request, signal) =>
      mutex.run(`${request.serviceId}\0${request.query.trackingId}`, () => prove(tools, request, signal)),
    doubt: (target) => breaker.doubt(target),
    refusedLater: (request) => refuseLater(tools, request),
    isIdle: (request, signal) => isIdle(tools, request, signal),
    supplied: (mailbox, trackingId) => candidates.supplied(mailbox, trackingId),
    settled: (mailbox, trackingId) => proven.forget(mailbox.name, trackingId),
    forgetExpired: () => candidates.forgetExpired(clock.now()),
    forgetDropped: (isSettled) => candidates.forgetDropped(isSettled),
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
