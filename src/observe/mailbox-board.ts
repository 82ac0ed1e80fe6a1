/** What is known of each mailbox: when it was polled, when it will be, and what is wrong since when. */
import type { Clock } from "../base/clock.ts";
import type { Fault } from "../base/faults.ts";
import type { MailboxStatus, Trouble } from "../model/status.ts";

export interface MailboxFacts {
  readonly name: string;
  readonly email: string;
  readonly pollMs: number;
  readonly paused: boolean;
}

interface Known {
  readonly facts: MailboxFacts;
  lastPollMs?: number;
  lastSuccessMs?: number;
  listed?: number;
  tokenValidUntilMs?: number | undefined;
  trouble?: Trouble | undefined;
}

export class MailboxBoard {
  readonly #clock: Clock;
  readonly #known: Map<string, Known>;

  constructor(mailboxes: readonly MailboxFacts[], clock: Clock) {
    this.#clock = clock;
    this.#known = new Map(mailboxes.map((facts) => [facts.name, { facts }]));
  }

  /** What is known of one that stays is kept. */
  set(mailboxes: readonly MailboxFacts[]): void {
    const before = new Map(this.#known);
    this.#known.clear();
    for (const facts of mailboxes) this.#known.set(facts.name, { ...before.get(facts.name), facts });
  }

  polled(name: string, listed: number): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    const nowMs = this.#clock.now();
    Object.assign(known, { lastPollMs: nowMs, lastSuccessMs: nowMs, listed, trouble: undefined });
  }

  failed(name: string, { code, message, advice }: Fault): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    const nowMs = this.#clock.now();
    known.lastPollMs = nowMs;
    const since = known.trouble?.since ?? new Date(nowMs).toISOString();
    known.trouble = { what: `mailbox ${name}`, since, code, message, advice };
  }

  tokenValidUntil(name: string, ms: number | undefined): void {
    const known = this.#known.get(name);
    if (known !== undefined) known.tokenValidUntilMs = ms;
  }

  read(): MailboxStatus[] {
    return [...this.#known.values()].map((known) => {
      const { name, email, pollMs, paused } = known.facts;
      const { lastPollMs } = known;
      return {
        name,
        email,
        paused,
        pollSeconds: pollMs / 1000,
        lastPoll: isoOf(lastPollMs),
        lastSuccess: isoOf(known.lastSuccessMs),
        nextPoll: paused || lastPollMs === undefined ? undefined : isoOf(lastPollMs + pollMs),
        listed: known.listed,
        tokenValidUntil: isoOf(known.tokenValidUntilMs),
        trouble: known.trouble,
      };
    });
  }
}

function isoOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
