/** The health of each mailbox: when it was and will be polled, and its trouble. */

import type { Clock } from "../base/clock.ts";
import type { Fault } from "../base/faults.ts";
import { isWithin, nextChange } from "../base/timetable.ts";
import type { DaemonEvent, ShownMailbox } from "../model/events.ts";
import type { MailboxStatus, Trouble } from "../model/status.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";

type EventOf<Type extends DaemonEvent["type"]> = Extract<DaemonEvent, { readonly type: Type }>;

interface Known {
  readonly facts: ShownMailbox;
  /** When its polls began. */
  sinceMs: number;
  lastPollMs?: number;
  /** The pause after a failed poll. */
  waitMs?: number;
  lastSuccessMs?: number;
  listed?: number;
  tokenValidUntilMs?: number | undefined;
  trouble?: Trouble | undefined;
  unusable?: (Trouble & { readonly entries: number }) | undefined;
}

/** A mailbox counts as no longer polled when its last poll is older than this many intervals, and than `leastMs`. */
const SILENT = { intervals: 5, leastMs: 5 * 60_000 };

export class MailboxBoard {
  readonly #clock: Clock;
  readonly #isPolledHere: boolean;
  readonly #known: Map<MailboxId, Known>;

  /** `isPolledHere`: by this process and no other. */
  constructor(mailboxes: readonly ShownMailbox[], clock: Clock, isPolledHere: boolean) {
    this.#clock = clock;
    this.#isPolledHere = isPolledHere;
    const sinceMs = clock.now();
    this.#known = new Map(mailboxes.map((facts) => [mailboxIdOf(facts.name), { facts, sinceMs }]));
  }

  get size(): number {
    return this.#known.size;
  }

  /** Mailboxes that stay keep their health, except that a paused one has no trouble. */
  set(mailboxes: readonly ShownMailbox[]): void {
    const before = new Map(this.#known);
    this.#known.clear();
    for (const facts of mailboxes) {
      const known = before.get(mailboxIdOf(facts.name));
      const sinceMs = known === undefined || known.facts.paused ? this.#clock.now() : known.sinceMs;
      const calm = facts.paused ? { trouble: undefined, unusable: undefined } : {};
      this.#known.set(mailboxIdOf(facts.name), { ...known, ...calm, facts, sinceMs });
    }
  }

  /** Polls begin again after a pause. */
  resume(): void {
    for (const known of this.#known.values()) known.sinceMs = this.#clock.now();
  }

  polled({ mailbox, listed, unusable, tokenValidUntilMs }: EventOf<"poll-succeeded">): void {
    const known = this.#known.get(mailboxIdOf(mailbox));
    if (known === undefined) return;
    const nowMs = this.#clock.now();
    const facts = { lastPollMs: nowMs, lastSuccessMs: nowMs, listed, tokenValidUntilMs };
    Object.assign(known, { ...facts, trouble: undefined, waitMs: 0 });
    if (unusable === 0) known.unusable = undefined;
  }

  /** Entries of the list cannot be used, so transfers may be missed. */
  rejected(name: string, entries: number, { message, advice }: Fault): void {
    const known = this.#known.get(mailboxIdOf(name));
    if (known === undefined) return;
    const since = known.unusable?.since ?? new Date(this.#clock.now()).toISOString();
    const count = entries === 1 ? "An entry" : `${entries} entries`;
    known.unusable = {
      entries,
      what: `mailbox ${name}`,
      mailboxes: [name],
      since,
      code: "ENTRIES_UNUSABLE",
      message: `${count} of the list cannot be used: ${message}`,
      advice,
    };
  }

  /** Troubles of mailboxes whose polls succeed, and the number of transfers that they concern. */
  unusable(): { readonly troubles: readonly Trouble[]; readonly entries: number } {
    const all = [...this.#known.values()].flatMap(({ unusable }) => unusable ?? []);
    return {
      troubles: all.map(({ entries: _, ...trouble }) => trouble),
      entries: all.reduce((sum, { entries }) => sum + entries, 0),
    };
  }

  failed({ mailbox, fault, waitMs, tokenValidUntilMs }: EventOf<"poll-failed">): void {
    const { code, message, advice } = fault;
    const known = this.#known.get(mailboxIdOf(mailbox));
    if (known === undefined) return;
    const nowMs = this.#clock.now();
    known.lastPollMs = nowMs;
    known.waitMs = waitMs;
    known.tokenValidUntilMs = tokenValidUntilMs;
    const since = known.trouble?.since ?? new Date(nowMs).toISOString();
    known.trouble = { what: `mailbox ${mailbox}`, mailboxes: [mailbox], since, code, message, advice };
  }

  /** One per cause: mailboxes of one service that fail in the same way share it. */
  troubles(): Trouble[] {
    const failing = [...this.#known.values()].flatMap((known) => {
      const trouble = this.#troubleOf(known);
      return trouble === undefined ? [] : [{ service: known.facts.service.baseUrl.origin, trouble }];
    });
    const causes = Map.groupBy(failing, ({ service, trouble }) => `${service} ${trouble.code}`);
    return [...causes.values()].flatMap(([first, ...others]) => {
      if (first === undefined) return [];
      const { service, trouble } = first;
      if (others.length === 0) return [trouble];
      const all = [trouble, ...others.map((other) => other.trouble)];
      const since = all.map((it) => it.since).toSorted()[0] ?? trouble.since;
      const mailboxes = all.flatMap((it) => it.mailboxes ?? []);
      return [{ ...trouble, what: `service ${service}`, since, mailboxes }];
    });
  }

  read(): MailboxStatus[] {
    const nowMs = this.#clock.now();
    return [...this.#known.values()].map((known) => {
      const { name, email, pollMs, paused, quiet, service } = known.facts;
      const { lastPollMs, waitMs = 0 } = known;
      return {
        name,
        email,
        service: service.baseUrl.origin,
        paused,
        pollSeconds: pollMs / 1000,
        lastPoll: isoOf(lastPollMs),
        lastSuccess: isoOf(known.lastSuccessMs),
        nextPoll:
          paused || lastPollMs === undefined ? undefined : isoOf(lastPollMs + Math.max(pollMs, waitMs)),
        listed: known.listed,
        tokenValidUntil: isoOf(known.tokenValidUntilMs),
        quietUntil: quiet && isWithin(quiet, nowMs) ? isoOf(nextChange(quiet, nowMs)) : undefined,
        trouble: this.#troubleOf(known),
      };
    });
  }

  #troubleOf(known: Known): Trouble | undefined {
    return known.trouble ?? this.#silence(known);
  }

  /** The trouble of a mailbox that is no longer polled, for whatever reason. */
  #silence({ facts, sinceMs, lastPollMs = 0 }: Known): Trouble | undefined {
    const { name, pollMs, paused } = facts;
    const lastMs = Math.max(lastPollMs, sinceMs);
    const mostMs = Math.max(SILENT.intervals * pollMs, SILENT.leastMs);
    if (paused || !this.#isPolledHere || this.#clock.now() - lastMs <= mostMs) return undefined;
    return {
      what: `mailbox ${name}`,
      mailboxes: [name],
      since: new Date(lastMs + pollMs).toISOString(),
      code: "POLL_OVERDUE",
      message: `It has not been polled since ${new Date(lastMs).toISOString()}, though it should be every ${pollMs / 1000} seconds.`,
      advice: "Read the last lines of the log, and restart the daemon.",
    };
  }
}

function isoOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
