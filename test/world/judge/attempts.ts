/** Judges when attempts begin: at once when a person wants one, and otherwise not before the time that status tells. */
import type { TransferRecord } from "../../../src/model/record.ts";
import type { Process } from "../ground/process.ts";
import { type Happening, happeningsOf } from "../plan/plan.ts";
import type { World } from "../world.ts";
import { boxOf } from "./expect.ts";
import type { Received } from "./observer.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** What is done at once is done within this time: less than the pause between two regular looks. */
const AT_ONCE_MS = 10 * SECOND_MS;
/** An attempt that is told to begin then may begin so much earlier. */
const EARLY_MS = 2 * SECOND_MS;
/** Something that a person did before is taken up within this time, however late a watch reports it. */
const TAKEN_UP_MS = 6 * MINUTE_MS;
/** A pause that a service asks for is kept this long. */
const LONGEST_REST_MS = 65 * MINUTE_MS;

/** Of a service that fails, and might fail again. */
const PAUSES: ReadonlySet<string> = new Set(["retry", "locked", "check"]);

/** After these, an attempt may begin at any time. */
const EXCUSES: ReadonlySet<Happening["kind"]> = new Set([
  "second",
  "freeze",
  "disk-fails",
  "sync-fails",
  "disk-full",
  "bad-folder",
  "vanish",
  "return",
]);

/** What a daemon has told of the next attempt. */
interface Told {
  readonly process: Process;
  readonly atMs: number;
  readonly untilMs: number;
}

/** Somebody wants an attempt. */
interface Wish {
  readonly what: string;
  /** The round that was open then. */
  readonly round: number;
  readonly atMs: number;
  readonly process: Process;
}

export class Attempts {
  readonly #world: World;
  /** By the key of the transfer, as everything here. */
  readonly #told = new Map<string, Told>();
  readonly #running = new Map<string, number>();
  readonly #wishes = new Map<string, readonly Wish[]>();

  constructor(world: World) {
    this.#world = world;
  }

  /** A daemon says in which state a transfer is, and until when it waits. */
  changed(process: Process, of: Received, { state, reason = "", until }: TransferRecord): void {
    this.#told.delete(of.key);
    if (state !== "waiting" || until === undefined || !PAUSES.has(reason)) return;
    const untilMs = this.#nowMs + Date.parse(until) - process.now();
    this.#told.set(of.key, { process, atMs: this.#nowMs, untilMs });
  }

  /** Returns how it ends. */
  began(process: Process, of: Received): () => void {
    const { key } = of;
    this.#checkTime(process, of);
    this.#told.delete(key);
    this.#wishes.delete(key);
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    return () => {
      this.#running.set(key, (this.#running.get(key) ?? 1) - 1);
      this.#lookSoon(of);
    };
  }

  /** To be called when a person wants another attempt at a transfer that is open. */
  wanted(of: Received, round: number, what: string): void {
    const { daemons, schedule } = this.#world;
    const { process } = daemons.running ?? {};
    if (process === undefined) return;
    const wish = { what, round, atMs: schedule.nowMs, process };
    this.#wishes.set(of.key, [...(this.#wishes.get(of.key) ?? []), wish]);
    this.#lookSoon(of);
  }

  #lookSoon(of: Received): void {
    if (!this.#wishes.has(of.key)) return;
    this.#world.schedule.after(AT_ONCE_MS, () => {
      if ((this.#running.get(of.key) ?? 0) === 0)
        for (const wish of this.#wishes.get(of.key) ?? []) this.#checkWish(of, wish);
    });
  }

  /** It was given at least so long ago, no attempt runs, and none has begun since. */
  #checkWish({ key, address, transfer }: Received, { what, round, atMs, process }: Wish): void {
    const { calm, daemons, observer, plan, site, watchMood } = this.#world;
    const daemon = daemons.running;
    if (this.#nowMs - atMs < AT_ONCE_MS || daemon?.process !== process || daemon.mode !== "run") return;
    if (watchMood !== "prompt" || plan.isCron === true || plan.site.isShared || site.isShared) return;
    const sinceMs = Math.max(calm.sinceMs(-1), daemon.startedMs, daemon.appliedMs, process.frozenUntilMs);
    if (sinceMs > atMs - MINUTE_MS / 2 || daemon.stop.signal.aborted) return;
    if (calm.hadWeather(transfer.service, ["limiting"], this.#nowMs - LONGEST_REST_MS)) return;
    const isOver = (observer.ends.get(key)?.round ?? 0) >= round;
    if (isOver || boxOf(daemon.site, address) === undefined || this.#isExcused()) return;
    observer.violate(`${what} ${transfer.trackingId} has not led to an attempt at once`);
  }

  #checkTime(process: Process, { key, transfer }: Received): void {
    const told = this.#told.get(key);
    if (told?.process !== process || this.#nowMs > told.untilMs - EARLY_MS) return;
    const { calm, observer, plan, hasNoEdits, services } = this.#world;
    const sinceMs = told.atMs - TAKEN_UP_MS;
    const isWanted = [...observer.orders, ...observer.supplies].some(
      ({ record, atMs }) => record.trackingId === transfer.trackingId && atMs >= sinceMs,
    );
    const isListed = services[transfer.service]?.stateOf(transfer) === "active";
    const areListsBad = calm.hadWeather(transfer.service, ["forgetful", "cutting", "stripping"], 0);
    if (isWanted || !isListed || areListsBad || !hasNoEdits || this.#isExcused()) return;
    if (plan.isCron === true || plan.site.isShared) return;
    const earlyMs = told.untilMs - this.#nowMs;
    observer.violate(
      `an attempt at ${key} begins ${Math.round(earlyMs / SECOND_MS)} s before the time that was told`,
    );
  }

  #isExcused(): boolean {
    return happeningsOf(this.#world.plan).some(({ kind }) => EXCUSES.has(kind));
  }

  get #nowMs(): number {
    return this.#world.schedule.nowMs;
  }
}
