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
  #polledServices: ReadonlyMap<string, string>;

  constructor(settings: Settings) {
    this.#now = settings;
    this.#configured = settings;
    this.#services = servicesOf(settings.mailboxes);
    this.#polledServices = servicesOf(settings.mailboxes.filter(({ paused }) => !paused));
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

  readonly services: Services = () => this.#polledServices;

  /** Of any mailbox that is configured. */
  serviceOf(mailbox: string): string | undefined {
    return this.#services.get(mailboxIdOf(mailbox));
  }

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
    this.#services = servicesOf(this.#now.mailboxes);
    this.#polledServices = servicesOf(this.#now.mailboxes.filter(({ paused }) => !paused));
    this.#configured = next;
    this.#pauses = pauses;
    return { changed: changedKeys(GROUPS, last, next), needsRestart: changedKeys(FIXED, before, next) };
  }
}

/** The service of each mailbox. */
function servicesOf(mailboxes: Settings["mailboxes"]): ReadonlyMap<string, string> {
  return new Map(mailboxes.map(({ name, service }) => [mailboxIdOf(name), serviceIdOf(service.baseUrl)]));
}

/** The new settings, with the old values of all keys that need a restart. */
function withFixedParts(before: Settings, next: Settings): Settings {
  const { inbox, work, state, queue, keep, http } = before;
  const fixed = { inbox, work, state, queue, keep };
  return { ...next, ...fixed, http: http && { ...http, tokens: next.http?.tokens ?? http.tokens } };
}

type ReadGroup = (settings: Settings) => unknown;

/** The values of each top-level key of the configuration. */
const GROUPS: Readonly<Record<string, ReadGroup>> = {
  service: ({ mailboxes }) => mailboxes.map(({ service }) => service),
  inbox: ({ inbox }) => inbox,
  work: ({ work }) => work,
  state: ({ state }) => state,
  timezone: ({ timezone }) => timezone,
  queue: ({ queue }) => queue,
  check: ({ mailboxes }) => mailboxes.map(({ check }) => check),
  mailboxes: ({ mailboxes }) =>
    mailboxes.map(({ service: _service, check: _check, handoff: _handoff, ...mailbox }) => mailbox),
  limits: ({ limits }) => limits,
  handoff: ({ handoff, mailboxes }) => [handoff, ...mailboxes.map((mailbox) => mailbox.handoff)],
  notify: ({ notify }) => notify,
  keep: ({ keep }) => keep,
  http: ({ http }) => http,
  log: ({ logLevel }) => logLevel,
};

const { inbox, work, state, queue, keep } = GROUPS;

/** The values of keys that change only with a restart. */
const FIXED = { inbox, work, state, queue, keep, http: withoutTokens };

/** The keys whose values differ. */
function changedKeys(
  groups: Readonly<Record<string, ReadGroup | undefined>>,
  before: Settings,
  next: Settings,
): string[] {
  const isChanged = (read: ReadGroup) => !isDeepStrictEqual(plain(read(before)), plain(read(next)));
  return Object.entries(groups).flatMap(([key, read]) => (read && isChanged(read) ? [key] : []));
}

/** Changed tokens apply at their next use. Adding the first or removing the last one needs a restart. */
function withoutTokens({ http }: Settings): unknown {
  return http && { ...http, tokens: http.tokens.size > 0 };
}

/** As JSON: a secret is represented by its source. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (_key, part: unknown) =>
      part instanceof Map ? Object.fromEntries(part) : part,
    ),
  );
}
