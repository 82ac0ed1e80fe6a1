/** The health of each mailbox: when it was and will be polled, and its trouble. */

import type { Clock } from "../base/clock.ts";
import { FAULT_CODES } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import { isoOf } from "../base/phrases.ts";
import { monotonicMs } from "../base/timers.ts";
import { isWithin, nextChange } from "../base/timetable.ts";
import type { EventOf, ShownMailbox } from "../model/events.ts";
import type { Rest } from "../model/job.ts";
import { Labels, serviceIdOf } from "../model/mailbox.ts";
import { commandFor } from "../model/order.ts";
import { type Broken, describeBroken, type Promised, WITHIN_MS } from "../model/promise.ts";
import { NO_MODE } from "../model/record.ts";
import type { DaemonFacts, MailboxStatus, TransferStatus, Trouble } from "../model/status.ts";
import { describeRenewal, findRenewal, type TokenFacts } from "../model/token.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";

interface Known {
  readonly facts: ShownMailbox;
  /** When its polls began, or it was last polled successfully, on the monotonic clock. */
  readonly servedMs: number;
  lastPollMs?: number;
  /** The pause after a failed poll. */
  waitMs?: number;
  lastSuccessMs?: number;
  listed?: number;
  token?: TokenFacts | undefined;
  /** Why its last poll failed. */
  trouble?: Trouble | undefined;
  /** The promise of its polls, while it is broken. */
  broken?: Broken | undefined;
  /** How many entries of its list cannot be used, although its polls succeed. */
  unusable?: (Trouble & { readonly entries: number }) | undefined;
}

/** The same trouble as the rest that the service may have asked for. */
const PAUSING: ReadonlySet<string> = new Set(["RATE_LIMITED", "SERVER_FAULT"]);
/** A poll succeeds within this many intervals. */
const INTERVALS = 3;

export class MailboxBoard {
  readonly #clock: Clock;
  readonly #known = new Map<MailboxId, Known>();
  /** By service. */
  readonly #rests = new Map<string, Rest & { readonly since: string; readonly untilMs: number }>();
  labels = new Labels([]);

  constructor(mailboxes: readonly ShownMailbox[], clock: Clock) {
    this.#clock = clock;
    this.set(mailboxes);
  }

  get size(): number {
    return this.#known.size;
  }

  has(name: string): boolean {
    return this.#known.has(mailboxIdOf(name));
  }

  /** Mailboxes that stay keep their health, except that a paused one has no trouble. */
  set(mailboxes: readonly ShownMailbox[]): void {
    const before = new Map(this.#known);
    this.#known.clear();
    this.labels = new Labels(mailboxes);
    for (const facts of mailboxes) {
      const known = before.get(mailboxIdOf(facts.name));
      const servedMs = known === undefined || known.facts.paused ? monotonicMs() : known.servedMs;
      const calm = facts.paused ? { trouble: undefined, unusable: undefined } : {};
      this.#known.set(mailboxIdOf(facts.name), { ...known, ...calm, facts, servedMs });
    }
  }

  polled({ mailbox, listed, unusable, token }: EventOf<"poll-succeeded">): void {
    const nowMs = this.#clock.now();
    const times = { lastPollMs: nowMs, lastSuccessMs: nowMs, servedMs: monotonicMs() };
    const facts = { ...times, listed, token, trouble: undefined, waitMs: 0 };
    this.#update(mailbox, () => (unusable === 0 ? { ...facts, unusable: undefined } : facts));
  }

  failed({ mailbox, fault, waitMs, token }: EventOf<"poll-failed">): void {
    const [lastPollMs, label] = [this.#clock.now(), this.labels.of(mailbox)];
    this.#update(mailbox, ({ trouble: before }) => {
      return { lastPollMs, waitMs, token, trouble: troubleOf(label, before?.since ?? lastPollMs, fault) };
    });
  }

  /** Here, or in another process. */
  recovered(mailbox: string): void {
    this.#update(mailbox, () => ({ servedMs: monotonicMs(), trouble: undefined, waitMs: 0 }));
  }

  rests({ service, rest }: EventOf<"service-rests">): void {
    const since = this.#rests.get(service)?.since ?? new Date(this.#clock.now()).toISOString();
    if (rest === undefined) this.#rests.delete(service);
    else this.#rests.set(service, { ...rest, since, untilMs: monotonicMs() + rest.forMs });
  }

  /** See `Board.reopen`. */
  reopen(): void {
    this.#rests.clear();
    for (const known of this.#known.values()) known.trouble = undefined;
  }

  /** Entries of the list cannot be used, so transfers may be missed. */
  rejected(name: string, entries: number, { message, advice }: Fault): void {
    const count = entries === 1 ? "An entry" : `${entries} entries`;
    const what = `${count} of the list cannot be used: ${message}`;
    const texts = { code: "ENTRIES_UNUSABLE", message: what, advice };
    const label = this.labels.of(name);
    this.#update(name, ({ unusable }) => {
      return { unusable: { entries, ...troubleOf(label, unusable?.since ?? this.#clock.now(), texts) } };
    });
  }

  #update(name: string, change: (known: Known) => Partial<Known>): void {
    const known = this.#known.get(mailboxIdOf(name));
    if (known !== undefined) Object.assign(known, change(known));
  }

  /** Troubles of mailboxes whose polls succeed, and the number of transfers that they concern. */
  unusable(): { readonly troubles: readonly Trouble[]; readonly entries: number } {
    const all = [...this.#known.values()].flatMap(({ unusable }) => unusable ?? []);
    return {
      troubles: all.map(({ entries: _, ...trouble }) => trouble),
      entries: all.reduce((sum, { entries }) => sum + entries, 0),
    };
  }

  /** Mailboxes whose address a person has to verify again soon. */
  renewals({ config }: DaemonFacts): Trouble[] {
    const nowMs = this.#clock.now();
    return [...this.#known.values()].flatMap(({ facts: { name, label = name, paused }, token }) => {
      const renewal = paused ? undefined : findRenewal(token, nowMs);
      if (renewal === undefined) return [];
      const advice = `Verify the address again: ${commandFor("verify-address", label, { config })}`;
      const code = "VERIFICATION_ENDS";
      return [troubleOf(label, renewal.sinceMs, { code, message: describeRenewal(renewal), advice })];
    });
  }

  /** Operators' pauses. Mailboxes that were paused together share one. */
  pauses({ config }: DaemonFacts): Trouble[] {
    const paused = [...this.#known.values()].filter(({ facts }) => facts.pause !== undefined);
    const groups = Map.groupBy(paused, ({ facts }) => JSON.stringify(facts.pause));
    return [...groups.values()].flatMap((group) => {
      const mailboxes = group.map(({ facts }) => facts.label ?? facts.name);
      const [name = "", ...others] = mailboxes;
      const { who, at } = group[0]?.facts.pause ?? { who: "", at: "" };
      const one = commandFor("resume", others.length === 0 ? name : "NAME", { config });
      const all = commandFor("resume", undefined, { config });
      return {
        what: others.length === 0 ? `mailbox ${name}` : "mailboxes",
        mailboxes,
        since: at,
        code: "MAILBOX_PAUSED",
        message: `Paused by ${who} since ${at}.`,
        advice: others.length === 0 ? `Resume it: ${one}` : `Resume all: ${all}\nResume one: ${one}`,
      };
    });
  }

  /** The rest of its service: none after one that ends by itself. */
  #restOf({ facts: { service } }: Known) {
    const rest = this.#rests.get(serviceIdOf(service.baseUrl));
    return rest?.isProbed === false && rest.untilMs < monotonicMs() ? undefined : rest;
  }

  /** Its trouble, or the rest of its service, which stands for a trouble that says the same. */
  #troubleOf(known: Known): Trouble | undefined {
    const { name, paused } = known.facts;
    const trouble = troubleIn(known);
    const rest = paused ? undefined : this.#restOf(known);
    const isSame = trouble === undefined || (rest?.isAsked && PAUSING.has(trouble.code));
    if (rest === undefined || !isSame) return trouble;
    const again = new Date(this.#clock.now() - monotonicMs() + rest.untilMs).toISOString();
    const message = rest.isAsked
      ? `The service asked for a rest. Inlet asks again at ${again}.`
      : "The service gives no answer. One mailbox asks for all once a minute.";
    const { advice } = FAULT_CODES.SERVICE_RESTS;
    return troubleOf(name, rest.since, { code: "SERVICE_RESTS", message, advice });
  }

  /** One per cause: mailboxes of one service that fail in the same way, or whose transfers lack a mode, share it. */
  troubles(transfers: readonly TransferStatus[]): Trouble[] {
    const modeless = transfers.filter(({ reason }) => reason === NO_MODE);
    const since = new Map(modeless.map((it) => [mailboxIdOf(it.mailbox), it.since ?? this.#clock.now()]));
    const failing = [...this.#known].flatMap(([id, known]) => {
      const { name, service } = known.facts;
      const unknown = since.has(id) ? troubleOf(name, since.get(id) ?? 0, new Fault("MODE_UNKNOWN")) : [];
      const troubles = [this.#troubleOf(known) ?? [], unknown].flat();
      return troubles.map((trouble) => ({ service: service.baseUrl.origin, trouble }));
    });
    const causes = Map.groupBy(failing, ({ service, trouble }) => `${service} ${trouble.code}`);
    return [...causes.values()].flatMap((group) => {
      const troubles = group.map(({ trouble }) => trouble);
      const [first] = group;
      if (first === undefined || group.length === 1) return troubles;
      const since = troubles.map((it) => it.since).toSorted()[0] ?? first.trouble.since;
      const mailboxes = troubles.flatMap((it) => it.mailboxes ?? []);
      return [{ ...first.trouble, what: `service ${first.service}`, since, mailboxes }];
    });
  }

  read(): MailboxStatus[] {
    const nowMs = this.#clock.now();
    return [...this.#known.values()].map((known) => {
      const { name, label = name, email, pollMs, paused, pause, quiet, service } = known.facts;
      const { lastPollMs, waitMs = 0 } = known;
      const nextMs = (lastPollMs ?? 0) + Math.max(pollMs, waitMs);
      return {
        name: label,
        email,
        service: service.baseUrl.origin,
        paused,
        pausedBy: pause?.who,
        pausedSince: pause?.at,
        pollSeconds: pollMs / 1000,
        lastPoll: isoOf(lastPollMs),
        lastSuccess: isoOf(known.lastSuccessMs),
        nextPoll: paused || lastPollMs === undefined || nextMs <= nowMs ? undefined : isoOf(nextMs),
        listed: known.listed,
        tokenValidUntil: isoOf(known.token?.validUntilMs),
        overdueSince: isoOf(known.broken?.sinceMs),
        quietUntil: quiet && isWithin(quiet, nowMs) ? isoOf(nextChange(quiet, nowMs)) : undefined,
        trouble: troubleIn(known),
      };
    });
  }

  /**
   * Each mailbox is polled successfully within three intervals. `polledMs`: when another process did on the monotonic clock,
   * if it is known.
   */
  *promised(polledMs: (mailbox: MailboxId) => number | undefined): Iterable<Promised> {
    for (const [id, known] of this.#known) {
      const { facts, servedMs, lastSuccessMs, trouble } = known;
      const { name, label = name, pollMs, paused } = facts;
      if (paused) continue;
      const otherMs = polledMs(id);
      const graceMs = Math.max(INTERVALS * pollMs, WITHIN_MS);
      const isPolled = lastSuccessMs !== undefined || otherMs !== undefined;
      const lastMs = Math.max(servedMs, otherMs ?? servedMs);
      const lastAtMs = this.#clock.now() - monotonicMs() + lastMs;
      yield {
        kind: "poll",
        subject: `mailbox ${label}`,
        mailbox: name,
        // Asked for only if it is broken.
        get text() {
          const since = isPolled ? `since ${new Date(lastAtMs).toISOString()}` : "yet";
          return `It has not been polled successfully ${since}, though it should be every ${pollMs / 1000} seconds.`;
        },
        dueMs: lastMs + graceMs,
        graceMs,
        isExplained: trouble !== undefined || this.#restOf(known) !== undefined,
      };
    }
  }

  /** `broken`: all promises of polls that are. */
  overdue(broken: readonly Broken[]): void {
    const found = new Map(broken.map((each) => [mailboxIdOf(each.mailbox ?? ""), each]));
    for (const [id, known] of this.#known) known.broken = found.get(id);
  }
}

/** A broken promise counts unless another trouble explains it. */
function troubleIn({ trouble, broken }: Known): Trouble | undefined {
  return trouble ?? (broken?.isExplained === false ? describeBroken(broken) : undefined);
}

function troubleOf(
  mailbox: string,
  since: string | number,
  { code, message, advice }: Pick<Trouble, "code" | "message" | "advice">,
): Trouble {
  const began = new Date(since).toISOString();
  return { what: `mailbox ${mailbox}`, mailboxes: [mailbox], since: began, code, message, advice };
}
