/** Runs the steps that follow a delivery, each until it succeeds or is given up. They know nothing of each other. */
import { setTimeout as pause } from "node:timers/promises";
import { backoffMs } from "../base/backoff.ts";
import { asFault, type Fault } from "../base/faults.ts";
import { type HandoffStep, STEPS } from "../model/handoff.ts";
import type { Handoff } from "../model/mailbox.ts";
import { runCommand } from "./command.ts";
import { deliveredOf, dueSteps, type Entry, isDelivered, type StepState } from "./entry.ts";
import { Lane } from "./lane.ts";
import type { Outbox } from "./outbox.ts";
import type { HandoffPatience } from "./port.ts";
import type { HandoffTools } from "./tools.ts";
import { callWebhook } from "./webhook.ts";

interface Attempt {
  /** Missing where it succeeded. */
  readonly fault: Fault | undefined;
  readonly output: string;
}

export interface StepHooks {
  /** What was tried is written down. */
  tried(name: string, entry: Entry): void;
  /** It cannot be read; the next look finds that it is due. */
  unread(fault: Fault): void;
  /** What was tried cannot be written down, and this is tried again until `written` says so of the same. */
  unwritten(what: string, fault: Fault): void;
  written(what: string): void;
}

export class Steps {
  readonly #tools: HandoffTools;
  readonly #outbox: Outbox;
  readonly #hooks: StepHooks;
  readonly #stop = new AbortController();
  readonly #lanes: Readonly<Record<HandoffStep, Lane>>;

  constructor(tools: HandoffTools, outbox: Outbox, hooks: StepHooks) {
    this.#tools = tools;
    this.#outbox = outbox;
    this.#hooks = hooks;
    const mayBegin = () => !this.#stop.signal.aborted && !tools.stop.aborted;
    const laneOf = (step: HandoffStep) => new Lane((name) => this.#run(name, step), mayBegin);
    this.#lanes = { command: laneOf("command"), webhook: laneOf("webhook") };
  }

  /** It is run as soon as there is a place, if it is due then. */
  add(name: string, step: HandoffStep): void {
    this.#lanes[step].add(name);
  }

  async idle(): Promise<void> {
    for (const step of STEPS) await this.#lanes[step].idle();
  }

  /** What runs is cut short, and is run again at the next start. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all(STEPS.map((step) => this.#lanes[step].close()));
  }

  async #run(name: string, step: HandoffStep): Promise<void> {
    try {
      const { receipts, clock } = this.#tools;
      const entry = await this.#outbox.read(name);
      // What is configured now is what is done, whatever is configured by then.
      const handoff = this.#tools.handoff();
      if (entry === undefined || !dueSteps(entry, handoff, clock.now()).includes(step)) return;
      const receipt = await receipts.find(entry);
      if (receipt !== undefined && !isDelivered(entry, receipt)) return;
      const attempt = await this.#attempt(entry, step, handoff);
      if (attempt.fault !== undefined && this.#stop.signal.aborted) return;
      await this.#note(name, step, entry, attempt);
    } catch (error) {
      this.#hooks.unread(asFault(error));
    }
  }

  async #attempt(entry: Entry, step: HandoffStep, { command, webhook }: Handoff): Promise<Attempt> {
    const { inbox, patience, clock } = this.#tools;
    const { signal } = this.#stop;
    try {
      if (step === "command" && command !== undefined) {
        return await runCommand(command, entry, inbox.root, patience.killMs, signal);
      }
      if (step === "webhook" && webhook !== undefined) await callWebhook(webhook, entry, clock, signal);
      return { fault: undefined, output: "" };
    } catch (error) {
      return { fault: asFault(error), output: "" };
    }
  }

  /** Until it is written down it is not given back: it would be done again and again while the disk is full. */
  async #note(name: string, step: HandoffStep, tried: Entry, { fault, output }: Attempt): Promise<void> {
    const { clock, random, patience, watch } = this.#tools;
    const atMs = clock.now();
    const noted = await this.#persist(`${step} ${name}`, () =>
      this.#outbox.inTurn(name, async () => {
        const entry = await this.#outbox.read(name);
        const before = entry?.[step];
        if (entry === undefined || before === undefined || entry.id !== tried.id) return undefined;
        const after = afterAttempt(before, fault, atMs, random(), patience);
        const changed = { ...entry, [step]: after };
        await this.#outbox.write(name, changed);
        return { changed, after };
      }),
    );
    if (noted === undefined) return;
    const { changed, after } = noted;
    if (fault === undefined) watch.handedOver(deliveredOf(changed), step);
    else {
      const willRetry = after.state === "pending";
      watch.handoffFailed(deliveredOf(changed), step, fault, { attempts: after.attempts, willRetry, output });
    }
    if (after.nextAt !== undefined) this.#lanes[step].addLater(name, Date.parse(after.nextAt) - clock.now());
    this.#hooks.tried(name, changed);
  }

  async #persist<Result>(what: string, write: () => Promise<Result>): Promise<Result | undefined> {
    const { signal } = this.#stop;
    for (;;) {
      try {
        const result = await write();
        this.#hooks.written(what);
        return result;
      } catch (error) {
        this.#hooks.unwritten(what, asFault(error));
        await pause(this.#tools.patience.lookMs, undefined, { signal }).catch(() => {});
        if (signal.aborted) return undefined;
      }
    }
  }
}

/** Pure. `fault`: what the attempt failed for; missing where it succeeded. */
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
  const facts = { attempts, since, error: fault.message };
  if (nowMs - Date.parse(since) >= giveUpMs) return { state: "failed", ...facts };
  const pauseMs = Math.max(backoffMs(attempts, random, retryMs), fault.retryAfterMs ?? 0);
  return { state: "pending", ...facts, nextAt: new Date(nowMs + pauseMs).toISOString() };
}
