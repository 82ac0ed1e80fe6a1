/** Waits until an operator's order has had its effect, and describes the result to people. */

import { actorOf } from "../base/fault-codes.ts";
import { pauseOrAbort } from "../base/timers.ts";
import type { PeekedStep } from "../handoff/peek.ts";
import type { Action } from "../model/order.ts";
import {
  DISCARDED,
  hasEnded,
  isDelivered,
  type State,
  shownFolder,
  type TransferRecord,
} from "../model/record.ts";
import { describeState } from "../model/status.ts";

export interface Outcome {
  readonly record: TransferRecord | undefined;
  /** False if the transfer was still in progress when the wait ended. */
  readonly isSettled: boolean;
  /** A sentence for people. */
  readonly text: string;
  /**
   * `fine`: delivered, discarded, acknowledged or handed over. `attention`: a person may have to act, because the transfer
   * waits, is in quarantine or gone, or the order had no effect. `pending`: the daemon goes on by itself, because the
   * transfer is in progress or the service cannot be reached.
   */
  readonly result: "fine" | "attention" | "pending";
}

interface Watching {
  /** Whether the order has been carried out. Missing: it has. */
  isCarriedOut?(): Promise<boolean>;
  /** The hand-off steps of the record's delivery. Missing: there are none. */
  steps?(record: TransferRecord): Promise<readonly PeekedStep[]>;
  /** The mailbox is paused: nothing is downloaded until it is resumed. */
  readonly isPaused?: boolean;
  /** Called after each look at the ledger. */
  onLook?(record: TransferRecord | undefined): void;
}

const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 1_000;
const GROWTH = 1.2;

/**
 * `before`: the record when the order was given. Ends when the order has had its effect, or `signal` aborts: then the
 * outcome is not settled. Throws the faults of `find`.
 */
export async function awaitOutcome(
  find: (before: TransferRecord) => Promise<TransferRecord | undefined>,
  before: TransferRecord,
  action: Action | "password",
  signal: AbortSignal,
  watching: Watching = {},
): Promise<Outcome> {
  for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * GROWTH, LAST_LOOK_MS)) {
    // Asked first: the record is at least as new as the answer.
    const isCarriedOut = (await watching.isCarriedOut?.()) ?? true;
    const now = await find(before);
    // If the transfer was delivered before the order, the order may repeat steps.
    const handsOver = now !== undefined && isDelivered(now) && isDelivered(before);
    const steps = (handsOver && (await watching.steps?.(now))) || [];
    watching.onLook?.(now);
    if (isCarriedOut && isOver(action, before, now, steps)) return describe(action, before, now, steps);
    if (isCarriedOut && watching.isPaused && now !== undefined && !isInProgress(now))
      return describePaused(now);
    if (signal.aborted) return describePending(before, now, isCarriedOut);
    await pauseOrAbort(waitMs, signal);
  }
}

/** Whether an order that was carried out has had its effect. */
function isOver(
  action: Action | "password",
  before: TransferRecord,
  now: TransferRecord | undefined,
  steps: readonly PeekedStep[],
): boolean {
  if (now === undefined) return true;
  if (now.state === "delivering") return false;
  const isNextRound = now.round > before.round;
  if (hasEnded(now)) {
    const startsSteps = action === "retry" || (action === "redeliver" && isNextRound);
    return !(startsSteps && steps.some(isUntried));
  }
  // A worker may have begun another round meanwhile: the daemon discards that one too.
  if (action === "discard") return false;
  if (now.state !== "waiting") return false;
  // An order sets `wanted`, and the attempt clears it.
  if (action !== "password" && now.wanted !== true) return true;
  if (isNextRound) return now.attempts > 0;
  // It waits after an attempt that began after the order, or was running when the order was given.
  return (
    now.attempts > before.attempts || (before.state !== "waiting" && now.at.waiting !== before.at.waiting)
  );
}

function isInProgress({ state }: TransferRecord): boolean {
  return state === "downloading" || state === "checking" || state === "delivering";
}

function isUntried({ state, attempts }: PeekedStep): boolean {
  return state === "pending" && attempts === 0;
}

function describe(
  action: Action | "password",
  before: TransferRecord,
  now: TransferRecord | undefined,
  steps: readonly PeekedStep[],
): Outcome {
  const { trackingId, round } = before;
  const settled = (result: Outcome["result"], text: string) =>
    ({ record: now, isSettled: true, text, result }) as const;
  if (now === undefined) return settled("attention", `${trackingId} is no longer known here.`);
  if (now.state === "gone" && now.acknowledged && action === "discard") {
    return settled("fine", `${trackingId} is gone, and no longer shown.`);
  }
  if (now.state === "gone" && now.reason === DISCARDED) {
    return settled(action === "discard" ? "fine" : "attention", `${trackingId} was discarded.`);
  }
  if (action === "discard") {
    return settled("attention", `${trackingId} was not discarded: it is ${now.state}.`);
  }
  if (action === "redeliver" && now.round === round) {
    const text = `${trackingId} was not delivered again: the service no longer has it. The earlier delivery is unchanged.`;
    return settled("attention", text);
  }
  const failed = steps.filter(({ state }) => state !== "done");
  if (failed.length > 0) {
    return settled("attention", `${trackingId} was not handed over. ${failed.map(describeStep).join(" ")}`);
  }
  if (isDelivered(now)) {
    const isHandedOver = action === "retry" && now.round === round && isDelivered(before);
    return settled("fine", isHandedOver ? `${trackingId} was handed over.` : describeDelivery(now));
  }
  const willRetry = now.state === "waiting" && !now.needsPerson && actorOf(now.code) === "none";
  return settled(willRetry ? "pending" : "attention", describeNow(now));
}

function describeStep({ step, state, error = `The ${step} failed` }: PeekedStep): string {
  const next = state === "pending" ? " The daemon retries it." : "";
  return `${error.replace(/\.$/, "")}.${next}`;
}

function describeDelivery({ trackingId, inbox, folder = "", state, released }: TransferRecord): string {
  const how = released === undefined ? "" : " on your responsibility";
  const next = state === "picked-up" ? ", and picked up" : "";
  return `${trackingId} was delivered${how} to ${shownFolder({ inbox, folder })}${next}.`;
}

function describeNow(record: TransferRecord): string {
  const { trackingId, message, until } = record;
  const next = until === undefined ? "" : `, until ${until}`;
  return `${trackingId}: ${describeState(record)}${next}.${message === undefined ? "" : ` ${message}`}`;
}

function describePaused(now: TransferRecord): Outcome {
  const text = `${now.trackingId} is not tried: its mailbox ${now.mailbox} is paused. It is tried when the mailbox is resumed.`;
  return { record: now, isSettled: true, text, result: "attention" };
}

const PROGRESS: Readonly<Partial<Record<State, string>>> = {
  discovered: "is still queued",
  downloading: "is still being downloaded",
  checking: "is still being checked",
  delivering: "is still being delivered",
  waiting: "has not been tried yet",
};

function describePending(
  { trackingId }: TransferRecord,
  now: TransferRecord | undefined,
  isCarriedOut: boolean,
): Outcome {
  const progress = isCarriedOut && now !== undefined ? PROGRESS[now.state] : undefined;
  const text =
    progress === undefined
      ? `The daemon has not carried out the order for ${trackingId} yet. The order is kept.`
      : `${trackingId} ${progress}: inlet show ${trackingId} shows how it ends.`;
  return { record: now, isSettled: false, text, result: "pending" };
}
