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
  #allServices: ReadonlyMap<string, string> = new Map();
  #polledServices: ReadonlyMap<string, string> = new Map();

  constructor(settings: Settings) {
    this.#now = settings;
    this.#configured = settings;
    this.#setServices();
  }

  get now(): Settings {
    return this.#now;
  }

  /** The settings as last read, without operators' pauses. Keys that need a restart are not in force yet. */
  get configured(): Settings {
    return this.#configured;
  }

  get pauses(): Pauses {
    return this.#pauses;
  }

  readonly services: Services = () => this.#polledServices;

  /** The service of any configured mailbox, even of a paused one. */
  serviceOf(mailbox: string): string | undefined {
    return this.#allServices.get(mailboxIdOf(mailbox));
  }

  /**
   * Puts new settings in force. Returns the top-level keys that have changed since the last reading, and the keys that keep
   * their old values until a restart. `next`: without operators' pauses.
   */
  replace(
    next: Settings,
    pauses: Pauses = this.#pauses,
  ): { readonly changed: string[]; readonly needsRestart: string[] } {
    const [inForce, lastRead] = [this.#now, this.#configured];
    this.#now = withFixedParts(inForce, { ...next, mailboxes: withPauses(next.mailboxes, pauses) });
    this.#setServices();
    this.#configured = next;
    this.#pauses = pauses;
    const changed = changedKeys(valuesOf(lastRead), valuesOf(next));
    return { changed, needsRestart: changedKeys(fixedValuesOf(inForce), fixedValuesOf(next)) };
  }

  #setServices(): void {
    const { mailboxes } = this.#now;
    this.#allServices = servicesOf(mailboxes);
    this.#polledServices = servicesOf(mailboxes.filter(({ paused }) => !paused));
  }
}

function servicesOf(mailboxes: Settings["mailboxes"]): ReadonlyMap<string, string> {
  return new Map(mailboxes.map(({ name, service }) => [mailboxIdOf(name), serviceIdOf(service.baseUrl)]));
}

/** The new settings, with the old values of all keys that need a restart. */
function withFixedParts(before: Settings, next: Settings): Settings {
  const { inbox, work, state, queue, keep, http } = before;
  const fixed = { inbox, work, state, queue, keep };
  return { ...next, ...fixed, http: http && { ...http, tokens: next.http?.tokens ?? http.tokens } };
}

/** The value of each top-level key of the configuration. */
function valuesOf({ mailboxes, handoff, logLevel, ...settings }: Settings) {
  const { inbox, work, state, timezone, queue, limits, notify, keep, http } = settings;
  return {
    service: mailboxes.map(({ service }) => service),
    inbox,
    work,
    state,
    timezone,
    queue,
    check: mailboxes.map(({ check }) => check),
    mailboxes: mailboxes.map(({ service: _, check: _check, handoff: _handoff, ...mailbox }) => mailbox),
    limits,
    handoff: [handoff, ...mailboxes.map((mailbox) => mailbox.handoff)],
    notify,
    keep,
    http,
    log: logLevel,
  };
}

/** Keys that change only with a restart. Of the tokens, only adding the first or removing the last needs one. */
function fixedValuesOf({ inbox, work, state, queue, keep, http }: Settings) {
  return { inbox, work, state, queue, keep, http: http && { ...http, tokens: http.tokens.size > 0 } };
}

function changedKeys(before: Readonly<Record<string, unknown>>, next: Readonly<Record<string, unknown>>) {
  const isChanged = (key: string) =>
    before[key] !== next[key] && !isDeepStrictEqual(plain(before[key]), plain(next[key]));
  return Object.keys(next).filter(isChanged);
}

/** As JSON: a secret is represented by its source. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (_key, part: unknown) =>
      part instanceof Map ? Object.fromEntries(part) : part,
    ),
  );
}
