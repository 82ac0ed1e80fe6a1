/**
 * Runs the steps that follow a delivery, each until it succeeds or is given up. Steps are independent of each other.
 */

import { join } from "node:path";
import { backoffMs, restMs } from "../base/backoff.ts";
import { formatChat } from "../base/chat.ts";
import type { Clock } from "../base/clock.ts";
import { KeyedPool } from "../base/concurrency.ts";
import { asFault, Fault } from "../base/faults.ts";
import { machine } from "../base/machine.ts";
import { formatSize, neutralize } from "../base/phrases.ts";
import { MAX_VARIABLE_LENGTH, variableText } from "../base/process.ts";
import { random } from "../base/random.ts";
import { postSigned, type Receiver } from "../base/signed-post.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { type HandoffStep, STEPS } from "../model/handoff.ts";
import type { Handoff, HandoffCommand } from "../model/mailbox.ts";
import type { Entry, StepState } from "../model/outbox.ts";
import { pageOf } from "../model/record.ts";
import {
  type Announced,
  announcedOf,
  type Delivery,
  followingOf,
  type OutboxTools,
  openOutboxDelivery,
} from "./delivery.ts";
import { dueSteps, kindOf, stepLeft, stepOf } from "./entry.ts";
import { type CommandEvent, Orphans } from "./orphans.ts";
import type { CheckedTransfer, HandoffPatience } from "./port.ts";

/** For each step. Keys beyond the limit are dropped, and the next scan adds them again. */
const LIMITS = { running: 4, waiting: 1_000 };

/** Of the webhook. */
const BODY_VERSION = 1;

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
    if (!dueSteps(key, entry, following, clock.now()).includes(step)) return;
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
    if (nextAt !== undefined) this.#pools[step].addLater(key, stepLeft(key, step, nextAt, clock.now()));
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
  const pauseMs = Math.max(backoffMs(attempts, jitter, retryMs), restMs(fault));
  return { state: "pending", ...facts, nextAt: new Date(nowMs + pauseMs).toISOString() };
}

/** Throws `COMMAND_FAILED` with its output. */
async function runCommand(
  command: HandoffCommand,
  delivery: Announced,
  inbox: string,
  killMs: number,
  signal: AbortSignal,
): Promise<void> {
  const env = { ...command.env, ...environmentOf(delivery, inbox) };
  const { why, output } = await machine().runProgram({ ...command, env }, killMs, signal);
  if (why !== undefined) throw new Fault("COMMAND_FAILED", { detail: why, output });
}

/** The facts that every command gets. */
type DeliveryFacts = Omit<CheckedTransfer, "folder" | "manifest" | "secrets">;

export function environmentOf(delivery: Announced, inbox: string): Record<string, string> {
  const { folder, manifestPath, deliveredAt } = delivery;
  const facts = factsOf("delivered", delivery, join(inbox, folder), manifestPath);
  return { ...facts, INLET_DELIVERED_AT: deliveredAt };
}

/** Senders choose some of these values, so control characters are replaced. `folder` and `manifest`: absolute paths. */
export function factsOf(
  event: CommandEvent,
  delivery: DeliveryFacts,
  folder: string,
  manifest: string,
): Record<string, string> {
  const { id, mailbox, sender, trackingId, transferId, verified } = delivery;
  const { recipients, securityMode, passwordMode } = delivery;
  const known = {
    INLET_TO: listOf(recipients?.to),
    INLET_CC: listOf(recipients?.cc),
    INLET_SECURITY_MODE: securityMode || undefined,
    INLET_PASSWORD_MODE: passwordMode,
  };
  const told = Object.entries(known).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(told.map(([name, value = ""]) => [name, variableText(value)])),
    INLET_EVENT: event,
    INLET_ID: id,
    INLET_FOLDER: folder,
    INLET_MANIFEST: manifest,
    INLET_MAILBOX: variableText(mailbox),
    INLET_SENDER: variableText(sender),
    INLET_TRACKING_ID: variableText(trackingId),
    INLET_TRANSFER_ID: variableText(transferId),
    INLET_VERIFIED: verified,
  };
}

/** As many whole addresses as fit, with commas between them. */
function listOf(addresses: readonly string[] | undefined): string | undefined {
  const all = addresses?.map((address) => address.replaceAll(",", "\ufffd")).join(",");
  return all?.slice(
    0,
    all.length > MAX_VARIABLE_LENGTH ? all.lastIndexOf(",", MAX_VARIABLE_LENGTH) : undefined,
  );
}

/**
 * Resolves when the call was accepted. `console`: the address that chat messages link to. Throws `WEBHOOK_FAILED`,
 * `SECRET_UNREADABLE`, or `STOPPED` on the signal.
 */
export function callWebhook(
  receiver: Receiver,
  delivery: Announced,
  console: string | undefined,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { format } = receiver;
  const body = format === "inlet" ? formatBody(delivery) : formatChat(format, describe(delivery, console));
  return postSigned(receiver, { id: delivery.id, body, failure: "WEBHOOK_FAILED" }, clock, signal);
}

function describe(delivery: Announced, console: string | undefined) {
  const { mailbox, sender, trackingId, subject, folder, files, bytes, verified } = delivery;
  const facts = Object.entries({ From: sender, To: mailbox, Subject: subject, Folder: folder })
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${name}: ${neutralize(value ?? "")}`);
  const size = formatSize({ files: files?.length, bytes });
  return {
    title: "Inlet delivered a transfer.",
    text: [...facts, ...(size === "" ? [] : [`Size: ${size}`]), `Verified: ${verified}`].join("\n"),
    footer: `Tracking-id: ${neutralize(trackingId)}`,
    links: console === undefined ? [] : [{ label: trackingId, url: pageOf(console, delivery) }],
  };
}

/** Receivers rely on these keys; docs/consuming.md explains them. */
export function formatBody(delivery: Announced): string {
  const { id, mailbox, sender, trackingId, transferId, deliveredAt, verified } = delivery;
  const { folder, inbox, manifest, files } = delivery;
  const where = { folder, inbox, manifest, files };
  const { recipients, securityMode, passwordMode } = delivery;
  const protection = { recipients, securityMode: securityMode || undefined, passwordMode };
  const facts = {
    id,
    mailbox,
    sender,
    trackingId,
    transferId,
    ...protection,
    ...where,
    deliveredAt,
    verified,
  };
  return JSON.stringify({ version: BODY_VERSION, event: "delivered", ...facts });
}
