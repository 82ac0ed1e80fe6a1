/** The settings in force. Everything that a reload can change is read from here at each use. */

import { isDeepStrictEqual } from "node:util";
import type { Settings } from "../config/settings.ts";
import { type Pauses, withPauses } from "../ledger/pauses.ts";
import type { Services } from "../model/job.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { mailboxIdOf } from "../model/transfer.ts";

export class LiveSettings {
  #now: Settings;
  #configured: Settings;
  #pauses: Pauses = new Map();
  #services: ReadonlyMap<string, string>;

  constructor(settings: Settings) {
    this.#now = settings;
    this.#configured = settings;
    this.#services = servicesOf(settings);
  }

  get now(): Settings {
    return this.#now;
  }

  /** As they were read last, without operators' pauses: some keys are not in force yet. */
  get configured(): Settings {
    return this.#configured;
  }

  /** The operators' pauses in force. */
  get pauses(): Pauses {
    return this.#pauses;
  }

  readonly services: Services = () => this.#services;

  /**
   * Puts new settings in force. Returns the top-level keys that have changed, and the keys that keep their old values until
   * a restart. `next`: without operators' pauses.
   */
  replace(
    next: Settings,
    pauses: Pauses = this.#pauses,
  ): { readonly changed: string[]; readonly needsRestart: string[] } {
    const [before, last] = [this.#now, this.#configured];
    this.#now = withFixedParts(before, { ...next, mailboxes: withPauses(next.mailboxes, pauses) });
    this.#services = servicesOf(this.#now);
    this.#configured = next;
    this.#pauses = pauses;
    return { changed: changedGroups(last, next), needsRestart: keysNeedingRestart(before, next) };
  }
}

/** The service of each mailbox that is polled. */
function servicesOf({ mailboxes }: Settings): ReadonlyMap<string, string> {
  const active = mailboxes.filter(({ paused }) => !paused);
  return new Map(active.map(({ name, service }) => [mailboxIdOf(name), serviceIdOf(service.baseUrl)]));
}

/** The new settings, with the old values of all keys that need a restart. */
function withFixedParts(before: Settings, next: Settings): Settings {
  const { inbox, work, state, queue, keep, http } = before;
  return {
    ...next,
    inbox,
    work,
    state,
    queue,
    keep,
    http: http && { ...http, tokens: next.http?.tokens ?? http.tokens },
  };
}

/** Top-level keys of the configuration whose values differ. */
function changedGroups(before: Settings, next: Settings): string[] {
  const groupsOf = ({
    inbox,
    work,
    state,
    timezone,
    queue,
    mailboxes,
    limits,
    handoff,
    notify,
    keep,
    http,
    logLevel,
  }: Settings) => ({
    service: mailboxes.map(({ service }) => service),
    inbox,
    work,
    state,
    timezone,
    queue,
    check: mailboxes.map(({ check }) => check),
    mailboxes: mailboxes.map(
      ({ service: _service, check: _check, handoff: _handoff, ...mailbox }) => mailbox,
    ),
    limits,
    handoff: [handoff, ...mailboxes.map((mailbox) => mailbox.handoff)],
    notify,
    keep,
    http,
    log: logLevel,
  });
  const [old, now] = [groupsOf(before), groupsOf(next)];
  const keys = Object.keys(old) as (keyof typeof old)[];
  return keys.filter((key) => !isDeepStrictEqual(plain(old[key]), plain(now[key])));
}

function keysNeedingRestart(before: Settings, next: Settings): string[] {
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ["inbox", before.inbox, next.inbox],
    ["work", before.work, next.work],
    ["state", before.state, next.state],
    ["queue", plain(before.queue), plain(next.queue)],
    ["keep", before.keep, next.keep],
    ["http", withoutTokens(before.http), withoutTokens(next.http)],
  ];
  return pairs.filter(([, old, changed]) => !isDeepStrictEqual(old, changed)).map(([name]) => name);
}

/** Changed tokens apply at their next use. Adding the first or removing the last one needs a restart. */
function withoutTokens(http: Settings["http"]): unknown {
  return plain(http && { ...http, tokens: http.tokens.size > 0 });
}

/** As JSON: a secret is represented by its source. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (_key, part: unknown) =>
      part instanceof Map ? Object.fromEntries(part) : part,
    ),
  );
}
