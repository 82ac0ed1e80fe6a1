/**
 * Polls mailboxes at their intervals, a limited number at once. Next is a due mailbox of the service with the fewest
 * running polls. Used by both engines.
 */
import { clearTimeout, monotonicMs, setTimeout, type Timer } from "../base/timers.ts";
import { POLLS_AT_ONCE, type PollSchedule, type PollWait, type Rest, type Services } from "../model/job.ts";
import { type Holder, Slots } from "./slots.ts";
import { FOLLOW_MS, restAskedFor, type Turn, type Turns } from "./turns.ts";

/** Must not throw. */
export type PollTurns = Pick<Turns, "take" | "end" | "ask" | "reset" | "endRests">;

export interface PollEvents {
  rest(service: string, rest: Rest | undefined): void;
  /** Another process polls this mailbox, with success. */
  served?(mailbox: string): void;
}

/** A poll is up to this share of its interval early or late. */
const JITTER = 0.1;
/** A rest that the service asked for has changed if its end differs by more than this. */
const SAME_MS = 5_000;

interface ScheduledPoll extends PollSchedule {
  /** The time from the end of the present poll to the next one. */
  waitMs: number;
  /** The last poll has failed, and asked for a pause, or the service rests. */
  isHeldBack: boolean;
  timer?: Timer;
}

/** A poll that waits for a slot, or runs. */
export interface DuePoll extends Holder {
  /** 0: the mailbox is not scheduled. */
  readonly everyMs: number;
  /** By `pollNow`: does not wait for its turn. */
  isUrgent: boolean;
  /** Whether it was polled. */
  readonly over: PromiseWithResolvers<boolean>;
}

export class Polls {
  readonly #random: () => number;
  readonly #turns: PollTurns;
  readonly #work: (mailbox: string, isProbe: boolean) => Promise<PollWait>;
  readonly #on: PollEvents;
  readonly #slots: Slots;
  /** The last schedule. */
  #wanted: readonly PollSchedule[] = [];
  readonly #scheduled = new Map<string, ScheduledPoll>();
  /** By mailbox, oldest first. */
  readonly #due = new Map<string, DuePoll>();
  readonly #running = new Map<string, Promise<void>>();
  /** The rests of services as this process knows them. */
  readonly #rests = new Map<string, { readonly isAsked: boolean; readonly untilMs: number }>();
  #isClosed = false;
  /** There was a schedule before. */
  #isReloaded = false;

  /** `work` polls a mailbox, and must not throw. `random`: between 0 and 1. */
  constructor(
    work: (mailbox: string, isProbe: boolean) => Promise<PollWait>,
    services: Services,
    turns: PollTurns,
    on: PollEvents,
    random: () => number,
  ) {
    this.#on = on;
    this.#work = work;
    this.#slots = new Slots(() => POLLS_AT_ONCE, services);
    this.#turns = turns;
    this.#random = random;
  }

  /** Polls these mailboxes and no others. New ones, and those that wait after a failed poll, are polled at once. */
  async schedule(polls: readonly PollSchedule[]): Promise<void> {
    this.#wanted = polls;
    const intervals = new Map(polls.map(({ mailbox, everyMs }) => [mailbox, everyMs]));
    const dropped = [...this.#scheduled.values()].filter(
      ({ mailbox, everyMs }) => intervals.get(mailbox) !== everyMs,
    );
    const heldBack = [...this.#scheduled.values()].filter(({ isHeldBack }) => isHeldBack);
    for (const { mailbox } of [...dropped, ...heldBack]) this.#stop(mailbox);
    for (const mailbox of await this.#turns.reset(polls, dropped)) this.#stop(mailbox);
    if (this.#isReloaded) {
      await this.#turns.endRests();
      for (const service of this.#rests.keys()) this.#noteRest(service, undefined);
    }
    this.#isReloaded = true;
    // A later schedule may have come meanwhile.
    for (const { mailbox, everyMs } of this.#wanted) {
      if (this.#isClosed || this.#scheduled.has(mailbox)) continue;
      // A random share, so that the polls of many mailboxes are spread out.
      const waitMs = everyMs * (JITTER + (1 - JITTER) * this.#random());
      const scheduled = { mailbox, everyMs, waitMs, isHeldBack: false };
      this.#scheduled.set(mailbox, scheduled);
      void this.#pollAndPlan(scheduled, false);
    }
  }

  /** Polls these mailboxes, scheduled or not, whatever their turns. Resolves when the polls are over. */
  async pollNow(mailboxes: readonly string[]): Promise<void> {
    const poll = (mailbox: string) => {
      const scheduled = this.#scheduled.get(mailbox);
      return scheduled === undefined ? this.#add(mailbox, true) : this.#pollAndPlan(scheduled, true);
    };
    await Promise.all(mailboxes.map(poll));
  }

  /** Polls these mailboxes, which are not scheduled. Returns those whose service asked for a long rest, and are not polled. */
  async pollOnce(mailboxes: readonly string[]): Promise<readonly string[]> {
    const arePolled = await Promise.all(mailboxes.map((mailbox) => this.#add(mailbox, false)));
    return mailboxes.filter((_, at) => !arePolled[at]);
  }

  /** A download was told that the service rests. */
  async rest(service: string, ms: number): Promise<void> {
    await this.#turns.ask(service, ms);
    this.#noteRest(service, restAskedFor(ms));
  }

  /** Starts no further polls. */
  close(): void {
    this.#isClosed = true;
    for (const mailbox of [...this.#scheduled.keys(), ...this.#due.keys()]) this.#stop(mailbox);
  }

  /** Ends the schedule of a mailbox. A running poll goes on. */
  #stop(mailbox: string): void {
    clearTimeout(this.#scheduled.get(mailbox)?.timer);
    this.#scheduled.delete(mailbox);
    this.#drop(mailbox);
  }

  /** Removes a poll that waits for a slot. */
  #drop(mailbox: string): void {
    this.#due.get(mailbox)?.over.resolve(false);
    this.#due.delete(mailbox);
  }

  /** Polls the mailbox, and plans its next poll unless the schedule has changed meanwhile. */
  async #pollAndPlan(scheduled: ScheduledPoll, isUrgent: boolean): Promise<void> {
    const { mailbox, everyMs } = scheduled;
    clearTimeout(scheduled.timer);
    await this.#add(mailbox, isUrgent);
    if (this.#scheduled.get(mailbox) !== scheduled) return;
    // Another call for this mailbox may have planned its next poll meanwhile.
    clearTimeout(scheduled.timer);
    scheduled.timer = setTimeout(() => void this.#pollAndPlan(scheduled, false), scheduled.waitMs);
    // For the time after that poll, which may make it longer.
    scheduled.waitMs = everyMs * (1 + JITTER * (this.#random() * 2 - 1));
  }

  /** Resolves when a poll that started after this call is over or dropped. A mailbox never has two polls at once. */
  async #add(mailbox: string, isUrgent: boolean): Promise<boolean> {
    const running = this.#running.get(mailbox);
    if (running !== undefined) return running.then(() => this.#add(mailbox, isUrgent));
    if (this.#isClosed) return false;
    const due = this.#due.get(mailbox);
    if (due !== undefined) {
      due.isUrgent ||= isUrgent;
      return due.over.promise;
    }
    const over = Promise.withResolvers<boolean>();
    const everyMs = this.#scheduled.get(mailbox)?.everyMs ?? 0;
    this.#due.set(mailbox, { mailbox, service: this.#slots.serviceOf(mailbox), everyMs, isUrgent, over });
    this.#fill();
    return over.promise;
  }

  #fill(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const poll = next;
      this.#due.delete(poll.mailbox);
      this.#slots.take(poll);
      const running = this.#poll(poll).then((isPolled) => {
        this.#slots.giveBack(poll);
        this.#running.delete(poll.mailbox);
        poll.over.resolve(isPolled);
        this.#fill();
      });
      this.#running.set(poll.mailbox, running);
    }
  }

  /** The oldest poll of the service with the fewest running polls. */
  #next(): DuePoll | undefined {
    let best: DuePoll | undefined;
    const held = ({ service }: Holder) => this.#slots.heldByService(service);
    for (const due of this.#due.values()) {
      if (this.#slots.isFreeFor(due) && (best === undefined || held(due) < held(best))) best = due;
    }
    return best;
  }

  /** Skips a mailbox whose turn has not come. Returns whether it was polled. */
  async #poll(poll: DuePoll): Promise<boolean> {
    const { mailbox, service, isUrgent } = poll;
    // Without a schedule, the object is thrown away after the poll.
    const scheduled = this.#scheduled.get(mailbox) ?? { waitMs: 0, isHeldBack: false };
    const turn: Turn = isUrgent ? { waitMs: 0 } : await this.#turns.take(poll);
    const { waitMs, rest, isServed, isProbe = false } = turn;
    if (!isUrgent) this.#noteRest(service, rest);
    if (isServed) this.#on.served?.(mailbox);
    if (waitMs > 0) {
      scheduled.isHeldBack ||= rest !== undefined;
      scheduled.waitMs = this.#spread(waitMs);
      return false;
    }
    if (this.#isClosed) return false;
    const wait = await this.#work(mailbox, isProbe);
    // A poll that was stopped says nothing about the service.
    if (this.#isClosed) return true;
    scheduled.isHeldBack = wait.waitMs > 0;
    scheduled.waitMs = Math.max(scheduled.waitMs, this.#spread(wait.waitMs));
    const after = await this.#turns.end(poll, scheduled.waitMs, wait);
    this.#noteRest(service, after);
    if (after?.isAsked === false) scheduled.waitMs = this.#spread(Math.min(after.forMs, FOLLOW_MS));
    return true;
  }

  /** Polls that wait for the same thing do not come together. */
  #spread(waitMs: number): number {
    return waitMs + Math.min(waitMs, FOLLOW_MS) * this.#random();
  }

  #noteRest(service: string, rest: Rest | undefined): void {
    const before = this.#rests.get(service);
    const untilMs = monotonicMs() + (rest?.forMs ?? 0);
    // Without time left, a mailbox asks now.
    if (before?.isAsked === rest?.isAsked && (rest === undefined || rest.forMs <= 0 || !rest.isAsked)) return;
    if (before?.isAsked && rest?.isAsked && Math.abs(before.untilMs - untilMs) < SAME_MS) return;
    if (rest === undefined) this.#rests.delete(service);
    else this.#rests.set(service, { isAsked: rest.isAsked, untilMs });
    this.#on.rest(service, rest);
  }
}
