/** What is known of each mailbox: when it was polled, when it will be, and what is wrong since when. */
import type { Clock } from "../base/clock.ts";
import type { Fault } from "../base/faults.ts";
import { isWithin, nextChange } from "../base/timetable.ts";
import type { DaemonEvent, ShownMailbox } from "../model/events.ts";
import type { MailboxStatus, Trouble } from "../model/status.ts";

type EventOf<Type extends DaemonEvent["type"]> = Extract<DaemonEvent, { readonly type: Type }>;

interface Known {
  readonly facts: ShownMailbox;
  /** Since when it is to be polled. */
  readonly sinceMs: number;
  lastPollMs?: number;
  /** After a poll that failed: the next one comes no sooner. */
  waitMs?: number;
  lastSuccessMs?: number;
  listed?: number;
  tokenValidUntilMs?: number | undefined;
  trouble?: Trouble | undefined;
  unusable?: (Trouble & { readonly entries: number }) | undefined;
}

/** A mailbox whose last poll is older than so many intervals, and so long ago, is not polled any more. */
const SILENT = { intervals: 5, leastMs: 5 * 60_000 };

export class MailboxBoard {
  readonly #clock: Clock;
  readonly #isPolledHere: boolean;
  readonly #known: Map<string, Known>;

  /** `isPolledHere`: by this process and no other. */
  constructor(mailboxes: readonly ShownMailbox[], clock: Clock, isPolledHere: boolean) {
    this.#clock = clock;
    this.#isPolledHere = isPolledHere;
    const sinceMs = clock.now();
    this.#known = new Map(mailboxes.map((facts) => [facts.name, { facts, sinceMs }]));
  }

  /** What is known of one that stays is kept. */
  set(mailboxes: readonly ShownMailbox[]): void {
    const before = new Map(this.#known);
    this.#known.clear();
    for (const facts of mailboxes) {
      const known = before.get(facts.name);
      const sinceMs = known === undefined || known.facts.paused ? this.#clock.now() : known.sinceMs;
      this.#known.set(facts.name, { ...known, facts, sinceMs });
    }
  }

  polled({ mailbox, listed, unusable, tokenValidUntilMs }: EventOf<"poll-succeeded">): void {
    const known = this.#known.get(mailbox);
    if (known === undefined) return;
    const nowMs = this.#clock.now();
    const facts = { lastPollMs: nowMs, lastSuccessMs: nowMs, listed, tokenValidUntilMs };
    Object.assign(known, { ...facts, trouble: undefined, waitMs: 0 });
    if (unusable === 0) known.unusable = undefined;
  }

  /** Entries of the list cannot be used, so that transfers may be missed. */
  rejected(name: string, entries: number, { message, advice }: Fault): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    const since = known.unusable?.since ?? new Date(this.#clock.now()).toISOString();
    const count = entries === 1 ? "An entry" : `${entries} entries`;
    const told = `${count} of the list cannot be used: ${message}`;
    const code = "ENTRIES_UNUSABLE";
    known.unusable = { entries, what: `mailbox ${name}`, since, code, message: told, advice };
  }

  /** Troubles of mailboxes that are polled well, and how many transfers these are about. */
  unusable(): { readonly troubles: readonly Trouble[]; readonly entries: number } {
    const all = [...this.#known.values()].flatMap(({ unusable }) => unusable ?? []);
    return {
      troubles: all.map(({ entries: _, ...trouble }) => trouble),
      entries: all.reduce((sum, { entries }) => sum + entries, 0),
    };
  }

  failed({ mailbox, fault, waitMs, tokenValidUntilMs }: EventOf<"poll-failed">): void {
    const { code, message, advice } = fault;
    const known = this.#known.get(mailbox);
    if (known === undefined) return;
    const nowMs = this.#clock.now();
    known.lastPollMs = nowMs;
    known.waitMs = waitMs;
    known.tokenValidUntilMs = tokenValidUntilMs;
    const since = known.trouble?.since ?? new Date(nowMs).toISOString();
    known.trouble = { what: `mailbox ${mailbox}`, since, code, message, advice };
  }

  read(): MailboxStatus[] {
    const nowMs = this.#clock.now();
    return [...this.#known.values()].map((known) => {
      const { name, email, pollMs, paused, quiet } = known.facts;
      const { lastPollMs, waitMs = 0 } = known;
      return {
        name,
        email,
        paused,
        pollSeconds: pollMs / 1000,
        lastPoll: isoOf(lastPollMs),
        lastSuccess: isoOf(known.lastSuccessMs),
        nextPoll:
          paused || lastPollMs === undefined ? undefined : isoOf(lastPollMs + Math.max(pollMs, waitMs)),
        listed: known.listed,
        tokenValidUntil: isoOf(known.tokenValidUntilMs),
        quietUntil: quiet && isWithin(quiet, nowMs) ? isoOf(nextChange(quiet, nowMs)) : undefined,
        trouble: known.trouble ?? this.#silence(known),
      };
    });
  }

  /** Whatever the reason is: one that nobody asks after must not look fine. */
  #silence({ facts, sinceMs, lastPollMs = 0 }: Known): Trouble | undefined {
    const { name, pollMs, paused } = facts;
    const lastMs = Math.max(lastPollMs, sinceMs);
    const mostMs = Math.max(SILENT.intervals * pollMs, SILENT.leastMs);
    if (paused || !this.#isPolledHere || this.#clock.now() - lastMs <= mostMs) return undefined;
    return {
      what: `mailbox ${name}`,
      since: new Date(lastMs + pollMs).toISOString(),
      code: "POLL_OVERDUE",
      message: `It has not been polled since ${new Date(lastMs).toISOString()}, though it should be every ${pollMs / 1000} seconds.`,
      advice: "Look into the log for what was told last; a restart of the daemon has it polled again.",
    };
  }
}

function isoOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
