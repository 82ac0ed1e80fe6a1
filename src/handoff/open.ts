/**
 * Opens the hand-offs: looks over all of them again and again, takes over those of processes that are gone, and has
 * their steps run. Only a few are in memory at any time, however many folders nobody has collected.
 */
import { setTimeout as pause } from "node:timers/promises";
import { asFault, type Fault } from "../base/faults.ts";
import { Outage } from "../base/outage.ts";
import { type HandoffStep, STEPS } from "../model/handoff.ts";
import type { Receipt } from "../model/receipt.ts";
import { dueSteps, type Entry, failedSteps, idOf, makeEntry, openSteps } from "./entry.ts";
import { lookAt } from "./look.ts";
import { folderIn, Outbox } from "./outbox.ts";
import type { Handoffs, TransferKey } from "./port.ts";
import { Steps } from "./steps.ts";
import { Summary } from "./summary.ts";
import type { HandoffTools } from "./tools.ts";

/** Looking takes at most one part in so many of the time: two per cent of a processor. */
const SHARE = 50;
/** Where looks are slow because the disk is far away, not because they are many. */
const LONGEST_PAUSE_MS = 30 * 60_000;
/** Of those that fail, so many are counted; and so many damaged files are told of once. */
const MOST_REMEMBERED = 10_000;

/** Among those that an outage meets: all looks together. What is to be written down goes by its own name. */
const LOOK = "look";

export interface OpenHandoffs extends Handoffs {
  /** Looks again and again from now on. */
  start(): void;
  /** Looks once, and resolves when every step that is due was tried. */
  finish(): Promise<void>;
  /** How many have a step that failed and was not done since. */
  failing(): number;
  close(): Promise<void>;
}

/** Throws `DISK_FULL` or `DISK_REFUSED` where the folder cannot be made. */
export async function openHandoffs(tools: HandoffTools): Promise<OpenHandoffs> {
  const handoffs = new FileHandoffs(tools);
  await handoffs.open();
  return handoffs;
}

class FileHandoffs implements OpenHandoffs {
  readonly #tools: HandoffTools;
  readonly #outbox: Outbox;
  readonly #steps: Steps;
  readonly #outage: Outage;
  readonly #stop = new AbortController();
  readonly #failing = new Set<string>();
  readonly #damaged = new Set<string>();
  readonly #lookingSoon = new Set<Promise<unknown>>();
  #looking: Promise<void> = Promise.resolve();
  /** How many steps were tried. */
  #tried = 0;

  constructor(tools: HandoffTools) {
    const { work, owner, clock, watch } = tools;
    this.#tools = tools;
    this.#outage = new Outage(clock, {
      began: (fault) => watch.handoffsStuck(fault),
      ended: (lastedMs) => watch.handoffsGoOn(lastedMs),
    });
    this.#outbox = new Outbox(folderIn(work), owner, (path) => this.#tellDamaged(path));
    this.#steps = new Steps(tools, this.#outbox, {
      tried: (name, entry) => {
        this.#tried++;
        this.#judge(name, entry);
        this.#lookSoon(name);
      },
      unread: (fault) => this.#isStuck(fault),
      unwritten: (what, fault) => this.#outage.meets(what, fault),
      written: (what) => this.#outage.isPast(what),
    });
  }

  async open(): Promise<void> {
    await this.#outbox.open(this.#tools.isAlone, this.#tools.clock.now());
  }

  async note(receipt: Receipt, isResumed: boolean): Promise<void> {
    const { clock } = this.#tools;
    const name = this.#tools.receipts.folderName(receipt);
    await this.#outbox.inTurn(name, async () => {
      const known = await this.#outbox.read(name);
      if (known?.id === idOf(receipt)) return;
      if (isResumed && (await this.#isNoted(name, receipt))) return;
      await this.#outbox.write(name, makeEntry(receipt, this.#tools.handoff(), clock.now()));
    });
  }

  begin(key: TransferKey): void {
    const name = this.#tools.receipts.folderName(key);
    const handoff = this.#tools.handoff();
    for (const step of STEPS) if (handoff[step] !== undefined) this.#steps.add(name, step);
  }

  async retry(key: TransferKey): Promise<boolean> {
    const { owner: self, isGone } = this.#tools;
    const name = this.#tools.receipts.folderName(key);
    const isDone = await this.#outbox.inTurn(name, async () => {
      for (const owner of await this.#outbox.ownersOf(name)) {
        if (owner === self) continue;
        if (!(await isGone(owner))) return false;
        await this.#takeOver(name, owner);
      }
      const entry = await this.#outbox.read(name);
      const steps = entry === undefined ? [] : openSteps(entry, this.#tools.handoff());
      if (entry === undefined || steps.length === 0) return true;
      const again = Object.fromEntries(
        steps.map((step) => [step, { state: "pending", attempts: 0 } as const]),
      );
      await this.#outbox.write(name, { ...entry, ...again });
      return true;
    });
    if (isDone) this.begin(key);
    return isDone;
  }

  start(): void {
    this.#looking = this.#lookAgainAndAgain();
  }

  async finish(): Promise<void> {
    // What fails is due again only after that: everything is tried once. More may be due than can wait at a time.
    const byMs = this.#tools.clock.now();
    for (let [due, before] = [1, -1]; due > 0 && before < this.#tried; ) {
      before = this.#tried;
      due = await this.#lookOverAll(byMs);
      await this.#steps.idle();
    }
  }

  failing(): number {
    return this.#failing.size;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#steps.close();
    await Promise.all([this.#looking, ...this.#lookingSoon]);
  }

  #takeOver(name: string, owner: string): Promise<boolean> {
    return this.#outbox.takeOver(name, owner, (entry) => this.#tools.receipts.find(entry));
  }

  /** Whether somebody else has noted this very delivery. */
  async #isNoted(name: string, receipt: Receipt): Promise<boolean> {
    for (const owner of await this.#outbox.ownersOf(name)) {
      if ((await this.#outbox.read(name, owner))?.id === idOf(receipt)) return true;
    }
    return false;
  }

  async #lookAgainAndAgain(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const startedMs = performance.now();
      await this.#lookOverAll();
      const tookMs = performance.now() - startedMs;
      const pauseMs = Math.max(this.#tools.patience.lookMs, tookMs * (SHARE - 1));
      await pause(Math.min(pauseMs, LONGEST_PAUSE_MS), undefined, { signal }).catch(() => {});
    }
  }

  /** How many steps were due by then. Never throws: what fails is looked at again. */
  async #lookOverAll(byMs?: number): Promise<number> {
    if (this.#stop.signal.aborted) return 0;
    const { owner: self, isGone, watch } = this.#tools;
    let due = 0;
    const gone = new Map<string, boolean>([[self, true]]);
    const summary = new Summary(this.#tools.handoff());
    let isWell = true;
    const fails = (error: unknown) => {
      isWell = this.#isStuck(error) ? false : isWell;
      return undefined;
    };
    try {
      for await (const { name, owner } of this.#outbox.list()) {
        if (this.#stop.signal.aborted) return due;
        if (!gone.has(owner)) gone.set(owner, await isGone(owner));
        if (!gone.get(owner)) continue;
        const entry = await this.#look(name, owner, byMs).catch(fails);
        summary.add(entry);
        due += entry === undefined ? 0 : this.#dueSteps(entry, byMs).length;
      }
    } catch (error) {
      fails(error);
    }
    if (isWell) this.#outage.isPast(LOOK);
    watch.handoffsSeen(summary);
    return due;
  }

  #lookSoon(name: string): void {
    const look = this.#look(name)
      .catch((error: unknown) => this.#isStuck(error))
      .finally(() => this.#lookingSoon.delete(look));
    this.#lookingSoon.add(look);
  }

  /** `undefined` where it is over, or not ours. */
  async #look(name: string, owner = this.#tools.owner, byMs?: number): Promise<Entry | undefined> {
    return this.#outbox.inTurn(name, async () => {
      if (owner !== this.#tools.owner && !(await this.#takeOver(name, owner))) return undefined;
      let saved = await this.#outbox.read(name);
      if (saved === undefined) return undefined;
      const save = async (entry: Entry) => {
        await this.#outbox.write(name, entry);
        saved = entry;
      };
      const after = await lookAt(this.#tools, saved, save);
      if (after === undefined) {
        this.#failing.delete(name);
        await this.#outbox.remove(name);
        return undefined;
      }
      if (after !== saved) await save(after);
      this.#judge(name, after);
      for (const step of this.#dueSteps(after, byMs)) this.#steps.add(name, step);
      return after;
    });
  }

  #dueSteps(entry: Entry, byMs = this.#tools.clock.now()): HandoffStep[] {
    return dueSteps(entry, this.#tools.handoff(), byMs);
  }

  #judge(name: string, entry: Entry): void {
    if (failedSteps(entry, this.#tools.handoff()).length === 0) this.#failing.delete(name);
    else if (this.#failing.size < MOST_REMEMBERED) this.#failing.add(name);
  }

  /** Whether it is the disk: what is wrong with one receipt is told by whoever works on it. */
  #isStuck(error: unknown): boolean {
    const fault: Fault = asFault(error);
    if (fault.code === "CLAIM_LOST" || fault.code === "RECEIPT_UNREADABLE") return false;
    this.#outage.meets(LOOK, fault);
    return true;
  }

  #tellDamaged(path: string): void {
    if (this.#damaged.has(path) || this.#damaged.size >= MOST_REMEMBERED) return;
    this.#damaged.add(path);
    this.#tools.watch.receiptDamaged(path, "this is no hand-off, or one of a newer version");
  }
}
