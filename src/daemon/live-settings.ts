/** The settings in force. Everything that a reload can change is read from here at each use. */
import { isDeepStrictEqual } from "node:util";
import type { Settings } from "../config/settings.ts";
import type { Services } from "../model/job.ts";
import { serviceIdOf } from "../model/mailbox.ts";

export class LiveSettings {
  #now: Settings;
  #services: ReadonlyMap<string, string>;

  constructor(settings: Settings) {
    this.#now = settings;
    this.#services = servicesOf(settings);
  }

  get now(): Settings {
    return this.#now;
  }

  readonly services: Services = () => this.#services;

  /** Puts new settings in force. Returns the keys that keep their old values until a restart. */
  replace(next: Settings): string[] {
    const before = this.#now;
    this.#now = withFixedParts(before, next);
    this.#services = servicesOf(next);
    return changedKeys(before, next);
  }
}

/** The service of each mailbox that is polled. */
function servicesOf({ mailboxes }: Settings): ReadonlyMap<string, string> {
  const active = mailboxes.filter(({ paused }) => !paused);
  return new Map(active.map(({ name, service }) => [name, serviceIdOf(service.baseUrl)]));
}

/** The new settings, with the old values of all keys that need a restart. */
function withFixedParts(before: Settings, next: Settings): Settings {
  const { inbox, work, state, queue, keep, http, limits } = before;
  const { transfers, minFreeBytes, bandwidth } = limits;
  return {
    ...next,
    inbox,
    work,
    state,
    queue,
    keep,
    http: http && { ...http, token: next.http?.token ?? http.token },
    limits: { ...next.limits, transfers, minFreeBytes, ...(bandwidth === undefined ? {} : { bandwidth }) },
  };
}

/** Secrets are compared by where they come from, not by their values. */
function changedKeys(before: Settings, next: Settings): string[] {
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ["inbox", before.inbox, next.inbox],
    ["work", before.work, next.work],
    ["state", before.state, next.state],
    ["queue", plain(before.queue), plain(next.queue)],
    ["keep", before.keep, next.keep],
    ["http", withoutToken(before.http), withoutToken(next.http)],
    ["limits.transfers", before.limits.transfers, next.limits.transfers],
    ["limits.minFreeSpace", before.limits.minFreeBytes, next.limits.minFreeBytes],
    ["limits.bandwidth", plain(before.limits.bandwidth), plain(next.limits.bandwidth)],
  ];
  return pairs.filter(([, old, changed]) => !isDeepStrictEqual(old, changed)).map(([name]) => name);
}

/** A changed token applies at its next use. Adding or removing it changes who may act, and needs a restart. */
function withoutToken(http: Settings["http"]): unknown {
  return plain(http && { ...http, token: http.token !== undefined });
}

/** As JSON, without functions. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null));
}
