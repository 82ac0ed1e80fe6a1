/**
 * A circuit breaker for passwords. An attempt whose answer is lost (a timeout, or an answer that a proxy may have
 * written) counts as spent, so an outage must not cost every transfer an attempt.
 *
 * Closed: every password may be sent. Doubted, after another request failed: none, until the service has answered a
 * request without a password. Open, after a lost answer: the same, and then one transfer tries at a time. The first
 * verdict closes it; each further lost answer keeps it open for longer.
 */
import * as v from "valibot";
import type { Clock } from "../base/clock.ts";
import { Semaphore } from "../base/concurrency.ts";
import { Fault } from "../base/faults.ts";
import type { PasswordService, ProofRequest } from "./request.ts";

/** After the second lost answer; doubled after each further one. */
const HOLD_MS = 60_000;
const LONGEST_HOLD_MS = 60 * 60_000;

/** Passwords on the way to a service at once: so many transfers can lose an attempt when an outage begins. */
const MAX_AT_ONCE = 4;

/** How many of the service's own answers a client had received at some moment. */
interface Mark {
  /** `undefined`: a client of an earlier process. */
  readonly client: PasswordService | undefined;
  readonly answers: number;
}

interface Open extends Mark, Readonly<BreakerMemory[string]> {
  /** One password is on its way, whose answer may close the breaker. */
  isTrying: boolean;
}

type Target = Pick<ProofRequest<unknown>, "service" | "probe">;

/** By service. Kept for the next process: a run from cron continues where the last one ended. */
export const BreakerMemoryShape = v.record(
  v.string(),
  v.object({ failures: v.number(), untilMs: v.number() }),
);
type BreakerMemory = v.InferOutput<typeof BreakerMemoryShape>;

export class Breaker {
  readonly #clock: Clock;
  readonly #open: Map<string, Open>;
  readonly #doubted = new Map<string, Mark>();
  /** By service. */
  readonly #places = new Map<string, Semaphore>();
  readonly #remember: (memory: BreakerMemory) => Promise<void>;

  /** `remember` stores the memory that the next process gets as `memory`. */
  constructor(
    clock: Clock,
    memory: BreakerMemory = {},
    remember: (memory: BreakerMemory) => Promise<void> = async () => {},
  ) {
    this.#clock = clock;
    this.#remember = remember;
    const before = { client: undefined, answers: 0, isTrying: false };
    this.#open = new Map(
      Object.entries(memory).map(([serviceId, known]) => [serviceId, { ...known, ...before }]),
    );
  }

  /** A request has failed, and not by the service's own answer. */
  doubt(service: PasswordService): void {
    this.#doubted.set(service.id, markOf(service));
  }

  /** Sends one password, with few others at the same time. Throws `PASSWORDS_HELD` while none may be sent. */
  async pass<Value>(target: Target, send: () => Promise<Value>, signal: AbortSignal): Promise<Value> {
    const { id } = target.service;
    const places = this.#places.get(id) ?? new Semaphore(() => MAX_AT_ONCE);
    this.#places.set(id, places);
    await places.take(send, signal).catch(() => {
      throw new Fault("STOPPED", { answeredBy: "unsent" });
    });
    try {
      return await this.#pass(target, send);
    } finally {
      places.giveBack(send);
    }
  }

  async #pass<Value>(target: Target, send: () => Promise<Value>): Promise<Value> {
    const { service } = target;
    const doubted = this.#doubted.get(service.id);
    if (doubted !== undefined) await demandAnswer(target, doubted);
    // A doubt that arose meanwhile stays.
    if (doubted === this.#doubted.get(service.id)) this.#doubted.delete(service.id);
    const trial = await this.#startTrial(target);
    try {
      const value = await send();
      await this.#close(service);
      return value;
    } catch (error) {
      const answeredBy = error instanceof Fault ? error.answeredBy : undefined;
      if (answeredBy === "service") await this.#close(service);
      else if (answeredBy !== "unsent") await this.#reopen(service, trial);
      throw error;
    } finally {
      if (trial !== undefined) trial.isTrying = false;
    }
  }

  /** Returns the open state that this attempt tries to end; `undefined` if the breaker is closed. */
  async #startTrial(target: Target): Promise<Open | undefined> {
    const open = this.#open.get(target.service.id);
    if (open === undefined) return undefined;
    const leftMs = open.untilMs - this.#clock.now();
    // A longer hold was noted by a wrong clock.
    const isHeld = leftMs > 0 && leftMs <= LONGEST_HOLD_MS;
    if (open.isTrying || isHeld) throw held(leftMs);
    open.isTrying = true;
    await demandAnswer(target, open).catch((error: unknown) => {
      open.isTrying = false;
      throw error;
    });
    return open;
  }

  /** Attempts that were under way when the outage began count as one failure. */
  async #reopen(service: PasswordService, trial: Open | undefined): Promise<void> {
    const failures = trial === undefined ? 1 : trial.failures + 1;
    if (failures <= (this.#open.get(service.id)?.failures ?? 0)) return;
    const holdMs = failures === 1 ? 0 : Math.min(HOLD_MS * 2 ** (failures - 2), LONGEST_HOLD_MS);
    const untilMs = this.#clock.now() + holdMs;
    this.#open.set(service.id, { failures, untilMs, ...markOf(service), isTrying: false });
    await this.#save();
  }

  async #close({ id }: PasswordService): Promise<void> {
    if (this.#open.delete(id)) await this.#save();
  }

  async #save(): Promise<void> {
    const known = [...this.#open].map(([id, { failures, untilMs }]) => [id, { failures, untilMs }]);
    // The next process may spend one more attempt.
    await this.#remember(Object.fromEntries(known)).catch(() => {});
  }
}

function markOf(client: PasswordService): Mark {
  return { client, answers: client.ownAnswers() };
}

/** Probes the service unless it has answered since the mark. Throws `PASSWORDS_HELD` if it does not answer. */
async function demandAnswer({ service, probe }: Target, since: Mark): Promise<void> {
  // The mark of another client says nothing about this one, which has to answer now.
  const before = service === since.client ? since.answers : service.ownAnswers();
  if (service.ownAnswers() !== before) return;
  let cause: unknown;
  await probe().catch((error: unknown) => {
    cause = error;
  });
  if (service.ownAnswers() === before) throw held(0, cause);
}

/** `cause`: why the probe failed. */
function held(leftMs: number, cause?: unknown): Fault {
  const why = cause instanceof Fault ? { detail: cause.message, cause } : {};
  return new Fault("PASSWORDS_HELD", { ...why, retryAfterMs: leftMs > 0 ? leftMs : undefined });
}
