/**
 * When mailboxes are polled, and how services rest. All of it is kept in values that expire, which processes may share. So
 * each mailbox has one poll per interval, whichever processes run, and whatever the values have lost.
 *
 * A service rests if it asks for that, or gives no answer to two mailboxes, or to its only one. A rest that it asks for is
 * kept for up to an hour. After that, and while there are no answers, one mailbox asks for all of its service: once an hour,
 * or once a minute. The first answer ends the rest, and the others follow.
 */
import { hash } from "node:crypto";
import * as v from "valibot";
import { systemClock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { replaceDurably } from "../base/durable.ts";
import { tryReadFile } from "../base/files.ts";
import { parseAs } from "../base/json.ts";
import { monotonicMs } from "../base/timers.ts";
import { LONGEST_MS } from "../base/waits.ts";
import type { PollSchedule, PollWait, Rest, Services } from "../model/job.ts";
import type { Holder } from "./slots.ts";

export interface Values {
  get(key: string): Promise<string | undefined>;
  /** Not above 0 for a missing value. */
  ttlMs(key: string): Promise<number>;
  /** `isNew`: not if there is one. Returns whether it was set. */
  set(key: string, value: string, ms: number, isNew?: boolean): Promise<boolean>;
  /** Returns whether there was any. */
  remove(keys: readonly string[]): Promise<boolean>;
}

type Poll = Holder & PollSchedule;

export interface Turn {
  /** 0: the mailbox may be polled now, and no other process polls it for `everyMs`. */
  readonly waitMs: number;
  readonly rest?: Rest | undefined;
  /** Another process has polled it, with success. */
  readonly isServed?: boolean;
  /** This poll asks for all mailboxes of a service that rests. */
  readonly isProbe?: boolean;
}

/** The values of a mailbox's key: a poll has begun, it has succeeded, or it has failed and the mailbox waits. */
const [BEGUN, POLLED, WAITS] = ["begun", "polled", "waits"];
/** The values of a service's keys: the service asked for it, or gives no answers. */
const [ASKED, SILENT] = ["asked", "silent"];
const LIMIT = "poll-limit:";
const MINUTE_MS = 60_000;
export const LONGEST_JOB_LIMIT_MS = LONGEST_MS.rest + 2 * MINUTE_MS;
/** A mailbox that waits is checked again within this time, as something may have ended its wait. */
const CHECK_AGAIN_MS = MINUTE_MS;
/** The same while one mailbox may ask at any moment: with the spread of polls, the others follow within twice this time. */
export const FOLLOW_MS = 5_000;
/** For so long it is known that one mailbox got no answer. */
const SILENCE_MS = 15 * MINUTE_MS;

export class Turns {
  readonly #values: Values;
  readonly #services: Services;
  readonly #isShared: boolean;

  /** `isShared`: other processes use these values. */
  constructor(values: Values, services: Services, isShared: boolean) {
    this.#values = values;
    this.#services = services;
    this.#isShared = isShared;
  }

  async take({ service, mailbox, everyMs }: Poll): Promise<Turn> {
    const values = this.#values;
    const { limit } = keysOf(service);
    const rest = await this.#restOf(service);
    // A poll outside of a schedule comes once: only a long rest keeps it from asking.
    const isLong = rest?.isAsked === true && (rest.isProbed || rest.forMs > MINUTE_MS);
    if (everyMs === 0 && !isLong) return { waitMs: 0 };
    if (rest !== undefined && rest.forMs > 0) {
      const isProbedSoon = rest.isProbed && rest.forMs <= MINUTE_MS;
      return { waitMs: Math.min(rest.forMs, isProbedSoon ? FOLLOW_MS : CHECK_AGAIN_MS), rest };
    }
    if (rest !== undefined) {
      const isProbe = await values.set(limit, SILENT, MINUTE_MS, true);
      return { waitMs: isProbe ? 0 : FOLLOW_MS, rest, isProbe };
    }
    if (!this.#isShared || everyMs === 0) return { waitMs: 0 };
    const key = keyOf({ mailbox, everyMs });
    if (await values.set(key, BEGUN, everyMs, true)) return { waitMs: 0 };
    const isServed = (await values.get(key)) === POLLED;
    // The key may have just expired.
    return { waitMs: Math.min(Math.max(await values.ttlMs(key), 1), CHECK_AGAIN_MS), isServed };
  }

  /** After a poll: the mailbox waits for `nextMs`, unless its service rests. Returns that rest. */
  async end(poll: Poll, nextMs: number, wait: PollWait): Promise<Rest | undefined> {
    const { service, everyMs } = poll;
    const { limitMs = 0, isSilent = false, waitMs } = wait;
    if (limitMs > 0) await this.ask(service, limitMs);
    else if (isSilent) await this.#noteSilence(poll, waitMs);
    else await this.#noteAnswer(service);
    const rest = await this.#restOf(service);
    const isFollowing = rest?.isAsked === false;
    if (this.#isShared && everyMs > 0)
      await this.#values.set(keyOf(poll), waitMs > 0 ? WAITS : POLLED, isFollowing ? FOLLOW_MS : nextMs);
    return rest;
  }

  /** The service asks for a rest. Never shortens one. */
  async ask(service: string, ms: number): Promise<void> {
    const values = this.#values;
    const { limit, why } = keysOf(service);
    const { forMs, isProbed } = restAskedFor(ms);
    const isKept = (await values.get(limit)) === ASKED && (await values.ttlMs(limit)) >= forMs;
    if (!isKept) await values.set(limit, ASKED, forMs);
    if (isProbed) await values.set(why, ASKED, Math.min(ms, LONGEST_MS.lock));
  }

  /** Ends the pauses that failed polls caused, and the turns of dropped polls. Returns the mailboxes that paused. */
  async reset(polls: readonly PollSchedule[], dropped: readonly PollSchedule[]): Promise<readonly string[]> {
    const states = await Promise.all(polls.map((poll) => this.#values.get(keyOf(poll))));
    const waiting = polls.filter((_, at) => states[at] === WAITS);
    const keys = [...waiting, ...dropped].map(keyOf);
    if (keys.length > 0) await this.#values.remove(keys);
    return waiting.map(({ mailbox }) => mailbox);
  }

  /** Ends all rests. */
  async endRests(): Promise<void> {
    const services = [...new Set(this.#services().values())];
    if (services.length > 0) await this.#values.remove(services.flatMap((it) => Object.values(keysOf(it))));
  }

  /** `forMs` is not above 0 if a mailbox may ask now. */
  async #restOf(service: string): Promise<Rest | undefined> {
    const { limit, why } = keysOf(service);
    const forMs = await this.#values.ttlMs(limit);
    const reason = await this.#values.get(why);
    if (reason !== undefined) return { isAsked: reason === ASKED, isProbed: true, forMs };
    return forMs > 0 ? { isAsked: true, isProbed: false, forMs } : undefined;
  }

  async #noteSilence({ service, mailbox }: Poll, waitMs: number): Promise<void> {
    const values = this.#values;
    const { limit, why, silent } = keysOf(service);
    const rest = await this.#restOf(service);
    const before = await values.get(silent);
    const mailboxes = [...this.#services().values()].filter((it) => it === service).length;
    await values.set(silent, digestOf(mailbox), SILENCE_MS);
    const isOneOfMany = mailboxes > 1 && (before === undefined || before === digestOf(mailbox));
    if (rest === undefined && isOneOfMany) return;
    if (rest === undefined) await values.set(why, SILENT, LONGEST_MS.lock);
    const everyMs = rest?.isAsked ? LONGEST_MS.rest : Math.min(waitMs, MINUTE_MS);
    if ((await values.get(limit)) !== ASKED) await values.set(limit, SILENT, everyMs);
  }

  /** A rest that the service asked for is kept, whoever gets an answer. */
  async #noteAnswer(service: string): Promise<void> {
    const { limit, why, silent } = keysOf(service);
    const isResting = (await this.#values.get(why)) !== undefined;
    if (isResting && (await this.#values.get(limit)) === ASKED) return;
    await this.#values.remove(isResting ? [why, limit, silent] : [silent]);
  }
}

export function restAskedFor(ms: number): Rest {
  return { isAsked: true, isProbed: ms > LONGEST_MS.rest, forMs: Math.min(ms, LONGEST_MS.rest) };
}

/** For how long no job starts: 0 if the service did not ask for a rest. Where a mailbox asks for all, it asks first. */
export function jobLimitMs(rest: Rest | undefined): number {
  if (!rest?.isAsked) return 0;
  return rest.isProbed ? LONGEST_JOB_LIMIT_MS : rest.forMs;
}

/** `limit`: nobody asks the service. `why`: it rests until it answers. `silent`: the last mailbox that got no answer. */
function keysOf(service: string) {
  const digest = digestOf(service);
  return { limit: `${LIMIT}${digest}`, why: `poll-rest:${digest}`, silent: `poll-silent:${digest}` };
}

/** Processes share no addresses. With another interval, a mailbox has another key. */
function keyOf({ mailbox, everyMs }: PollSchedule): string {
  return `poll:${digestOf(`${mailbox} ${everyMs}`)}`;
}

function digestOf(name: string): string {
  return hash("sha256", name).slice(0, 24);
}

const FileShape = v.record(v.string(), v.object({ value: v.string(), until: v.string() }));

/** The values of one process alone. In a file, they are kept for the next process: a service rests over a restart. */
export class OwnValues implements Values {
  readonly #values = new Map<string, { readonly value: string; readonly untilMs: number }>();
  readonly #path: string | undefined;
  #loading: Promise<void> | undefined;
  readonly #saves = new Coalesced(() => this.#save());

  constructor(path?: string) {
    this.#path = path;
  }

  async get(key: string): Promise<string | undefined> {
    return (await this.ttlMs(key)) > 0 ? this.#values.get(key)?.value : undefined;
  }

  async ttlMs(key: string): Promise<number> {
    await this.#loaded();
    return (this.#values.get(key)?.untilMs ?? 0) - monotonicMs();
  }

  async set(key: string, value: string, ms: number, isNew = false): Promise<boolean> {
    if ((await this.get(key)) !== undefined && isNew) return false;
    this.#values.set(key, { value, untilMs: monotonicMs() + ms });
    await this.#saves.run();
    return true;
  }

  async remove(keys: readonly string[]): Promise<boolean> {
    await this.#loaded();
    const isAny = keys.map((key) => this.#values.delete(key)).includes(true);
    if (isAny) await this.#saves.run();
    return isAny;
  }

  #loaded(): Promise<void> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  /** The wall clock may have been set meanwhile, so nothing lasts longer than it may. */
  async #load(): Promise<void> {
    if (this.#path === undefined) return;
    // What cannot be read is forgotten: the service is asked once more.
    const text = await tryReadFile(this.#path).catch(() => undefined);
    for (const [key, { value, until }] of Object.entries(parseAs(FileShape, text) ?? {})) {
      const longestMs = key.startsWith(LIMIT) ? LONGEST_MS.rest : LONGEST_MS.lock;
      const leftMs = Math.min(Date.parse(until) - systemClock.now(), longestMs);
      if (leftMs > 0) this.#values.set(key, { value, untilMs: monotonicMs() + leftMs });
    }
  }

  async #save(): Promise<void> {
    if (this.#path === undefined) return;
    const wallMs = systemClock.now() - monotonicMs();
    const kept = [...this.#values].flatMap(([key, { value, untilMs }]) =>
      untilMs > monotonicMs() ? [[key, { value, until: new Date(wallMs + untilMs).toISOString() }]] : [],
    );
    const text = `${JSON.stringify(Object.fromEntries(kept))}\n`;
    // What cannot be written is forgotten at the next start.
    await replaceDurably(this.#path, text, 0o600).catch(() => {});
  }
}
