/**
 * Runs the steps that follow a delivery, each until it succeeds or is given up. Steps are independent of each other.
 */

import { backoffMs } from "../base/backoff.ts";
import { KeyedPool } from "../base/concurrency.ts";
import { asFault, type Fault } from "../base/faults.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { type HandoffStep, STEPS } from "../model/handoff.ts";
import type { Handoff } from "../model/mailbox.ts";
import { runCommand } from "./command.ts";
import { type Delivery, eventFactsOf } from "./delivery.ts";
import { dueSteps, type Entry, kindOf, type StepState, stepOf } from "./entry.ts";
import { Orphans } from "./orphans.ts";
import type { Outbox } from "./outbox.ts";
import { type Announced, announcedOf, openOutboxDelivery } from "./outbox-delivery.ts";
import type { HandoffPatience } from "./port.ts";
import { followingOf, type HandoffTools } from "./tools.ts";
import { callWebhook } from "./webhook.ts";

/** Deliveries that are remembered as free of orphans. */
const MAX_FREE = 10_000;
/** For each step. Keys beyond the limit are dropped, and the next scan adds them again. */
const LIMITS = { running: 4, waiting: 1_000 };

export interface StepHooks {
  /** An attempt was made, and its result is stored. */
  tried(key: string, entry: Entry, delivery: Delivery): void;
  /** The entry cannot be read. The next scan finds the step due again. */
  readFailed(key: string, error: unknown): void;
  /**
   * The result of an attempt cannot be stored. The write is retried until `writeSucceeded` follows. `what`: the step and
   * the key of the entry.
   */
  writeFailed(what: string, fault: Fault): void;
  writeSucceeded(what: string): void;
}

export class Steps {
  readonly #tools: HandoffTools;
  readonly #outbox: Outbox;
  readonly #hooks: StepHooks;
  readonly #orphans: Orphans;
  /** Entries that are free of orphans: no other process has started a command for them. */
  readonly #free = new Set<string>();
  readonly #stop = new AbortController();
  /** Aborts when no further step may start. */
  readonly #noMore: AbortSignal;
  readonly #pools: Readonly<Record<HandoffStep, KeyedPool>>;

  constructor(tools: HandoffTools, outbox: Outbox, hooks: StepHooks) {
    this.#tools = tools;
    this.#outbox = outbox;
    this.#hooks = hooks;
    this.#orphans = new Orphans(tools.patience);
    this.#noMore = AbortSignal.any([this.#stop.signal, tools.stop]);
    const poolOf = (step: HandoffStep) => new KeyedPool(LIMITS, (key) => this.#run(key, step), this.#noMore);
    this.#pools = { command: poolOf("command"), webhook: poolOf("webhook") };
  }

  /** The entry is new, or its orphans have ended. Kept only if no other process can leave new orphans. */
  noteNoOrphans(key: string): void {
    if (this.#tools.isAlone && this.#free.size < MAX_FREE) this.#free.add(key);
  }

  /** Runs the step as soon as a slot is free, if it is due then. */
  add(key: string, step: HandoffStep): void {
    this.#pools[step].add(key);
  }

  async idle(): Promise<void> {
    for (const step of STEPS) await this.#pools[step].idle();
  }

  /** Ends running steps. The next start runs them again. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all(STEPS.map((step) => this.#pools[step].close()));
  }

  /** Where another process has the entry, the next scan tries again. */
  async #run(key: string, step: HandoffStep): Promise<void> {
    try {
      await this.#outbox.hold(key, () => this.#runHeld(key, step));
    } catch (error) {
      this.#hooks.readFailed(key, error);
    }
  }

  async #runHeld(key: string, step: HandoffStep): Promise<void> {
    const { clock } = this.#tools;
    const opened = await this.#outbox.change(key, () => openOutboxDelivery(this.#tools, this.#outbox, key));
    if (opened === undefined) return;
    // One configuration for the whole attempt, whatever is loaded meanwhile.
    const following = followingOf(this.#tools, opened.delivery);
    const { handoff } = following;
    if (!dueSteps(opened.stored.entry, following, clock.now()).includes(step)) return;
    if (step === "command" && !(await this.#clearOrphans(key, opened.delivery, handoff))) return;
    const announced = await announcedOf(this.#tools, opened);
    const fault = await this.#attempt(announced, step, handoff);
    if (fault !== undefined && this.#stop.signal.aborted) return;
    await this.#record(key, step, opened.delivery, fault);
  }

  /** True once no command of this delivery runs. */
  async #clearOrphans(key: string, { id }: Delivery, { command }: Handoff): Promise<boolean> {
    if (this.#free.has(key)) return true;
    if (!(await this.#orphans.clear(id, command?.timeoutMs ?? 0, this.#noMore))) return false;
    this.noteNoOrphans(key);
    return true;
  }

  /** Why the step failed; `undefined` on success. */
  async #attempt(
    delivery: Announced,
    step: HandoffStep,
    { command, webhook }: Handoff,
  ): Promise<Fault | undefined> {
    const { inbox, patience, clock, console } = this.#tools;
    const { signal } = this.#stop;
    try {
      if (step === "command" && command !== undefined) {
        const root = delivery.inbox ?? inbox.root;
        await runCommand(command, delivery, root, patience.killMs, signal);
      }
      if (step === "webhook" && webhook !== undefined)
        await callWebhook(webhook, delivery, console(), clock, signal);
      return undefined;
    } catch (error) {
      return asFault(error);
    }
  }

  /** Returns only when the result is stored: otherwise the step would run again and again on a full disk. */
  async #record(key: string, step: HandoffStep, delivery: Delivery, fault: Fault | undefined): Promise<void> {
    const { clock, emit } = this.#tools;
    const atMs = clock.now();
    const entry = await this.#retryWrite(`${step} ${key}`, () =>
      this.#store(key, step, delivery, fault, atMs),
    );
    const after = entry?.[step];
    if (entry === undefined || after === undefined) return;
    const delivered = eventFactsOf(delivery);
    if (fault === undefined) {
      if (step === "command") this.#free.delete(key);
      emit({ type: "handoff-succeeded", delivered, step });
    } else {
      const willRetry = after.state === "pending";
      const { attempts } = after;
      emit({ type: "handoff-failed", delivered, step, fault, attempts, willRetry });
    }
    if (after.nextAt !== undefined) this.#pools[step].addLater(key, Date.parse(after.nextAt) - clock.now());
    this.#hooks.tried(key, entry, delivery);
  }

  async #store(
    key: string,
    step: HandoffStep,
    delivery: Delivery,
    fault: Fault | undefined,
    atMs: number,
  ): Promise<Entry | undefined> {
    const { random, patience } = this.#tools;
    return this.#outbox.change(key, async () => {
      const stored = await this.#outbox.take(key);
      if (stored === undefined) return undefined;
      const before = stepOf(stored.entry, step);
      const entry = { ...stored.entry, [step]: afterAttempt(before, fault, atMs, random(), patience) };
      await this.#outbox.save(key, stored, entry, kindOf(entry, followingOf(this.#tools, delivery)));
      return entry;
    });
  }

  async #retryWrite<Result>(what: string, write: () => Promise<Result>): Promise<Result | undefined> {
    const { signal } = this.#stop;
    for (;;) {
      try {
        const result = await write();
        this.#hooks.writeSucceeded(what);
        return result;
      } catch (error) {
        this.#hooks.writeFailed(what, asFault(error));
        await pauseOrAbort(this.#tools.patience.scanMs, signal);
        if (signal.aborted) return undefined;
      }
    }
  }
}

/** Pure. `fault`: why the attempt failed; missing on success. */
export function afterAttempt(
  before: StepState,
  fault: Fault | undefined,
  nowMs: number,
  random: number,
  { retryMs, giveUpMs }: HandoffPatience,
): StepState {
  const attempts = before.attempts + 1;
  if (fault === undefined) return { state: "done", attempts };
  const since = before.since ?? new Date(nowMs).toISOString();
  const facts = { attempts, since, error: fault.message, output: fault.output };
  if (nowMs - Date.parse(since) >= giveUpMs) return { state: "failed", ...facts };
  const pauseMs = Math.max(backoffMs(attempts, random, retryMs), fault.retryAfterMs ?? 0);
  return { state: "pending", ...facts, nextAt: new Date(nowMs + pauseMs).toISOString() };
}
