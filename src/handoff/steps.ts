/**
 * Runs the steps that follow a delivery, each until it succeeds or is given up. Steps are independent of each other.
 */

import { backoffMs } from "../base/backoff.ts";
import { KeyedPool } from "../base/concurrency.ts";
import { asFault, type Fault } from "../base/faults.ts";
import { random } from "../base/random.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { type HandoffStep, STEPS } from "../model/handoff.ts";
import type { Handoff } from "../model/mailbox.ts";
import type { Entry, StepState } from "../model/outbox.ts";
import { runCommand } from "./command.ts";
import {
  type Announced,
  announcedOf,
  type Delivery,
  followingOf,
  type OutboxTools,
  openOutboxDelivery,
} from "./delivery.ts";
import { dueSteps, kindOf, stepOf } from "./entry.ts";
import { Orphans } from "./orphans.ts";
import type { HandoffPatience } from "./port.ts";
import { callWebhook } from "./webhook.ts";

/** For each step. Keys beyond the limit are dropped, and the next scan adds them again. */
const LIMITS = { running: 4, waiting: 1_000 };

export class Steps {
  readonly #tools: OutboxTools;
  readonly #noteResult: (key: string, entry: Entry, delivery: Delivery) => void;
  readonly #orphans: Orphans;
  readonly #stop = new AbortController();
  /** Aborts when no further step may start. */
  readonly #noMore: AbortSignal;
  readonly #pools: Readonly<Record<HandoffStep, KeyedPool>>;
  /** How many attempts were made whose results are stored. */
  tried = 0;

  /** `noteResult`: called when the result of an attempt is stored. */
  constructor(tools: OutboxTools, noteResult: (key: string, entry: Entry, delivery: Delivery) => void) {
    this.#tools = tools;
    this.#noteResult = noteResult;
    this.#orphans = new Orphans(tools.patience);
    this.#noMore = AbortSignal.any([this.#stop.signal, tools.stop]);
    const poolOf = (step: HandoffStep) => new KeyedPool(LIMITS, (key) => this.#run(key, step), this.#noMore);
    this.#pools = { command: poolOf("command"), webhook: poolOf("webhook") };
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

  /** Where another process has the entry, or it cannot be read, the next scan tries again. */
  async #run(key: string, step: HandoffStep): Promise<void> {
    const { outbox, failures } = this.#tools;
    try {
      await outbox.hold(key, () => this.#runHeld(key, step));
    } catch (error) {
      failures.failed(key, error);
    }
  }

  async #runHeld(key: string, step: HandoffStep): Promise<void> {
    const { clock, outbox } = this.#tools;
    const opened = await outbox.change(key, () => openOutboxDelivery(this.#tools, key));
    if (opened === undefined) return;
    const { entry, delivery } = opened;
    // One configuration for the whole attempt, whatever is loaded meanwhile.
    const following = followingOf(this.#tools, delivery);
    const { handoff } = following;
    if (!dueSteps(entry, following, clock.now()).includes(step)) return;
    if (step === "command") {
      const limitMs = handoff.command?.timeoutMs ?? 0;
      if (!(await this.#orphans.clear(delivery.id, limitMs, this.#noMore))) return;
    }
    const announced = await announcedOf(this.#tools, delivery);
    const fault = await this.#attempt(announced, step, handoff);
    if (fault !== undefined && this.#stop.signal.aborted) return;
    await this.#record(key, step, delivery, fault);
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
    this.#noteResult(key, entry, delivery);
    const { attempts, state, nextAt } = after;
    const facts = { delivered: delivery, step };
    if (fault === undefined) emit({ type: "handoff-succeeded", ...facts });
    else emit({ type: "handoff-failed", ...facts, fault, attempts, willRetry: state === "pending" });
    if (nextAt !== undefined) this.#pools[step].addLater(key, Date.parse(nextAt) - clock.now());
    this.tried++;
  }

  async #store(
    key: string,
    step: HandoffStep,
    delivery: Delivery,
    fault: Fault | undefined,
    atMs: number,
  ): Promise<Entry | undefined> {
    const { patience, outbox } = this.#tools;
    return outbox.change(key, async () => {
      const stored = await outbox.take(key);
      if (stored === undefined) return undefined;
      const before = stepOf(stored.entry, step);
      const entry = { ...stored.entry, [step]: afterAttempt(before, fault, atMs, random(), patience) };
      await outbox.save(key, stored, entry, kindOf(entry, followingOf(this.#tools, delivery)));
      return entry;
    });
  }

  async #retryWrite<Result>(what: string, write: () => Promise<Result>): Promise<Result | undefined> {
    const { signal } = this.#stop;
    const { failures, patience } = this.#tools;
    for (;;) {
      try {
        const result = await write();
        failures.outage.clear(what);
        return result;
      } catch (error) {
        failures.outage.add(what, asFault(error));
        await pauseOrAbort(patience.scanMs, signal);
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
  jitter: number,
  { retryMs, giveUpMs }: HandoffPatience,
): StepState {
  const attempts = before.attempts + 1;
  if (fault === undefined) return { state: "done", attempts };
  const since = before.since ?? new Date(nowMs).toISOString();
  const facts = { attempts, since, error: fault.message, output: fault.output };
  if (nowMs - Date.parse(since) >= giveUpMs) return { state: "failed", ...facts };
  const pauseMs = Math.max(backoffMs(attempts, jitter, retryMs), fault.retryAfterMs ?? 0);
  return { state: "pending", ...facts, nextAt: new Date(nowMs + pauseMs).toISOString() };
}
