/**
 * Holds passwords back from a service that left the verdict on one open: by a timeout, or by an answer that a proxy may
 * have written. Such an attempt counts as spent, so an outage must not cost one for every transfer.
 *
 * Closed: every password may be sent. Doubted, because another request failed: none, until the service has answered a
 * request without a password. Open: the same, and then one transfer tries at a time. The first verdict closes it; another
 * open one keeps it open for longer each time.
 */
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/faults.ts";

/** After the second open verdict; doubled after each further one. */
const HOLD_MS = 60_000;
const LONGEST_HOLD_MS = 60 * 60_000;

/** How many answers in its own format a client had received at some moment. */
interface Mark {
  readonly client: object;
  readonly answers: number;
}

interface Open extends Mark {
  readonly failures: number;
  readonly untilMs: number;
  isTrying: boolean;
}

/** The service that a password goes to. */
export interface PasswordGoal {
  readonly origin: string;
  /** Counts its own answers; several can talk to one service. */
  readonly client: object;
  /** How many requests without a password the service has answered in its own format. */
  ownAnswers(): number;
  /** One request without a password. Throws faults. */
  askHarmlessly(): Promise<void>;
}

/** What outlives the process, so that rounds from cron do not each begin anew. */
export interface BreakerMemory {
  readonly [origin: string]: { readonly failures: number; readonly untilMs: number };
}

export class Breaker {
  readonly #clock: Clock;
  readonly #open: Map<string, Open>;
  readonly #doubted = new Map<string, Mark>();
  readonly #remember: (memory: BreakerMemory) => Promise<void>;

  /** `remember` keeps what is to be given as `memory` to the next process. */
  constructor(
    clock: Clock,
    memory: BreakerMemory = {},
    remember: (memory: BreakerMemory) => Promise<void> = async () => {},
  ) {
    this.#clock = clock;
    this.#remember = remember;
    const before = { client: {}, answers: 0, isTrying: false };
    this.#open = new Map(Object.entries(memory).map(([origin, known]) => [origin, { ...known, ...before }]));
  }

  /** A request has failed, and not by the service's own word. */
  doubt(goal: Pick<PasswordGoal, "origin" | "client" | "ownAnswers">): void {
    this.#doubted.set(goal.origin, markOf(goal));
  }

  /** Sends one password. Throws `PASSWORDS_HELD` while none may be sent. */
  async pass<Value>(goal: PasswordGoal, send: () => Promise<Value>): Promise<Value> {
    const doubted = this.#doubted.get(goal.origin);
    if (doubted !== undefined) await demandAnswer(goal, doubted);
    if (doubted === this.#doubted.get(goal.origin)) this.#doubted.delete(goal.origin);
    const trial = await this.#demand(goal);
    try {
      const value = await send();
      await this.#close(goal);
      return value;
    } catch (error) {
      const word = error instanceof Fault ? error.word : undefined;
      if (word === "service") await this.#close(goal);
      else if (word !== "unsent") await this.#reopen(goal, trial);
      throw error;
    } finally {
      if (trial !== undefined) trial.isTrying = false;
    }
  }

  /** Returns the open state that the attempt is to end, if there is one. */
  async #demand(goal: PasswordGoal): Promise<Open | undefined> {
    const open = this.#open.get(goal.origin);
    if (open === undefined) return undefined;
    const leftMs = open.untilMs - this.#clock.now();
    // A longer hold than any was noted by a clock that was wrong.
    const isHeld = leftMs > 0 && leftMs <= LONGEST_HOLD_MS;
    if (open.isTrying || isHeld) throw held(leftMs);
    open.isTrying = true;
    await demandAnswer(goal, open).catch((error: unknown) => {
      open.isTrying = false;
      throw error;
    });
    return open;
  }

  /** Attempts that were under way when the outage began are one failure together. */
  async #reopen(goal: PasswordGoal, trial: Open | undefined): Promise<void> {
    const { origin } = goal;
    const failures = trial === undefined ? 1 : trial.failures + 1;
    if (failures <= (this.#open.get(origin)?.failures ?? 0)) return;
    const holdMs = failures === 1 ? 0 : Math.min(HOLD_MS * 2 ** (failures - 2), LONGEST_HOLD_MS);
    const untilMs = this.#clock.now() + holdMs;
    this.#open.set(origin, { failures, untilMs, ...markOf(goal), isTrying: false });
    await this.#save();
  }

  async #close({ origin }: PasswordGoal): Promise<void> {
    if (this.#open.delete(origin)) await this.#save();
  }

  /** A convenience: without it the next process may spend one more attempt. */
  async #save(): Promise<void> {
    const known = [...this.#open].map(([origin, { failures, untilMs }]) => [origin, { failures, untilMs }]);
    await this.#remember(Object.fromEntries(known)).catch(() => {});
  }
}

function markOf({ client, ownAnswers }: Pick<PasswordGoal, "client" | "ownAnswers">): Mark {
  return { client, answers: ownAnswers() };
}

/** Asks the service where it has not answered since. Throws `PASSWORDS_HELD` where it does not answer now. */
async function demandAnswer({ client, ownAnswers, askHarmlessly }: PasswordGoal, since: Mark): Promise<void> {
  const before = client === since.client ? since.answers : ownAnswers();
  if (ownAnswers() !== before) return;
  let cause: unknown;
  await askHarmlessly().catch((error: unknown) => {
    cause = error;
  });
  if (ownAnswers() === before) throw held(0, cause);
}

/** `cause`: what the service said against a request without a password. */
function held(leftMs: number, cause?: unknown): Fault {
  const why = cause instanceof Fault ? { detail: cause.message, cause } : {};
  return new Fault("PASSWORDS_HELD", { ...why, ...(leftMs > 0 ? { retryAfterMs: leftMs } : {}) });
}
