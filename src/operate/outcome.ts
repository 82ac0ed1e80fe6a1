/** Waits until an operator's act on one transfer has had its effect, and describes the result to people. */
import { actorOf } from "../base/fault-codes.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { type PeekedStep, peekSteps } from "../handoff/peek.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import { mailboxOf } from "../model/mailbox.ts";
import type { TransferAct } from "../model/order.ts";
import {
  BROWSER,
  DISCARDED,
  hasEnded,
  isDelivered,
  isIncluded,
  type State,
  shownFolder,
  type TransferRecord,
  waitsForPassword,
} from "../model/record.ts";
import { describeState } from "../model/status.ts";
import { isRefused } from "../passwords/guard.ts";
import { readDrop } from "../passwords/stored.ts";
import { type ActTools, type SubmittedAct, spentOn } from "./act.ts";

export interface Outcome {
  readonly record: TransferRecord | undefined;
  /** False if the transfer was still in progress when the wait ended. */
  readonly isSettled: boolean;
  /** A sentence for people. */
  readonly text: string;
  /**
   * `fine`: delivered, discarded, acknowledged, granted or handed over. `attention`: a person may have to act, because the
   * transfer waits, is in quarantine or gone, or the order had no effect. `pending`: the daemon goes on by itself, because
   * the transfer is in progress or the service cannot be reached.
   */
  readonly result: "fine" | "attention" | "pending";
}

interface Wait {
  readonly signal: AbortSignal;
  /** A healthy daemon carries out the order within this time. */
  readonly carriedOutMs?: number;
  /** Called after each look at the ledger, while the outcome is open. */
  onLook?(soFar: Outcome): void;
}

interface Watched {
  find(): Promise<TransferRecord | undefined>;
  /** Whether the order has been carried out. Missing: it has. */
  isCarriedOut?(): Promise<boolean>;
  readonly number?: number | undefined;
  /** The hand-off steps of the record's delivery. Missing: there are none. */
  steps?(record: TransferRecord): Promise<readonly PeekedStep[]>;
  /** The mailbox is paused, and the act has no effect until it is resumed. */
  readonly isPaused?: boolean;
}

/** The outcome of an act that was given. Ends when it has had its effect, or the wait is over: then it is not settled. */
export async function awaitAct(tools: ActTools, submitted: SubmittedAct, wait: Wait): Promise<Outcome> {
  const { act, before, number, isCarriedOut, password } = submitted;
  const peek = peekLedger(tools);
  const needsMailbox = act !== "discard" && act !== "grant";
  const isPaused = needsMailbox && mailboxOf(tools.mailboxes, before)?.paused === true;
  const outcome = await awaitOutcome(before, act, wait, {
    find: () => peek.find(before),
    // No password is tried while the mailbox is paused, so there is nothing to wait for.
    isCarriedOut: async () => (act === "password" && isPaused) || isCarriedOut(),
    number,
    isPaused,
    steps: (record) =>
      peekSteps(tools.work, nameOf(record), act === "redeliver" ? record.round : 1, record.round),
  });
  const verdict = password && (await verdictOn(tools, submitted, outcome));
  return verdict === undefined ? outcome : { ...outcome, text: `${verdict} ${outcome.text}` };
}

/** Whether the service accepted the supplied password; `undefined` if that is not known. */
async function verdictOn(
  tools: ActTools,
  { password, dropped, before }: SubmittedAct,
  { record, isSettled }: Outcome,
): Promise<string | undefined> {
  if (record === undefined || password === undefined) return undefined;
  if (isDelivered(record)) return "The password was accepted.";
  if (record.reason === BROWSER || (!isSettled && record.attempts === before.attempts)) return undefined;
  if (await isRefused(record, await spentOn(tools, record), password)) return "The password was refused.";
  const isKept = dropped !== undefined && (await readDrop(dropped))?.password.reveal() === password.reveal();
  if (isKept) return "The password is kept until its outcome is known.";
  return waitsForPassword(record) ? "The password was not sent." : "The password was accepted.";
}

const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 1_000;
const GROWTH = 1.2;

/** `before`: the record when the order was given. Throws the faults of `find`. */
export async function awaitOutcome(
  before: TransferRecord,
  act: TransferAct,
  { signal, carriedOutMs = Number.POSITIVE_INFINITY, onLook }: Wait,
  watched: Watched,
): Promise<Outcome> {
  let waitedMs = 0;
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * GROWTH, LAST_LOOK_MS)) {
    // Asked first: the record is at least as new as the answer.
    const isOver = (await watched.isCarriedOut?.()) ?? true;
    const now = await watched.find();
    const isCarriedOut = isOver || (now !== undefined && isIncluded(watched.number ?? Infinity, now));
    // An order for a delivered transfer may repeat the steps of its hand-off.
    const mayRepeat = now !== undefined && isDelivered(now) && isDelivered(before);
    const steps = (mayRepeat && (await watched.steps?.(now))) || [];
    const look = { act, before, now, isCarriedOut, steps };
    if (isCarriedOut && hasEffect(look)) return describe(look);
    if (isCarriedOut && watched.isPaused && now !== undefined && !isInProgress(now))
      return describePaused(now);
    const pending = describePending(look);
    if (signal.aborted || (!isCarriedOut && waitedMs >= carriedOutMs)) return pending;
    onLook?.(pending);
    await pauseOrAbort(pauseMs, signal);
    waitedMs += pauseMs;
  }
}

/** What is known at one moment. */
interface Look extends Pick<SubmittedAct, "act" | "before"> {
  readonly now: TransferRecord | undefined;
  readonly isCarriedOut: boolean;
  readonly steps: readonly PeekedStep[];
}

/** Whether an order that was carried out has had its effect. */
function hasEffect({ act, before, now, steps }: Look): boolean {
  if (act === "grant" || now === undefined) return true;
  if (now.state === "delivering") return false;
  const isNextRound = now.round > before.round;
  if (hasEnded(now)) {
    const startsSteps = act === "retry" || (act === "redeliver" && isNextRound);
    return !(startsSteps && steps.some(isUntried));
  }
  // A worker may have begun another round meanwhile: the daemon discards that one too.
  if (act === "discard" || now.state !== "waiting") return false;
  // An order sets `wanted`, and the attempt clears it.
  if (act !== "password" && now.wanted !== true) return true;
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

/** The outcome of an act that is over. */
function describe({ act, before, now, steps }: Look): Outcome {
  const { trackingId, round } = before;
  const settled = (result: Outcome["result"], text: string) =>
    ({ record: now, isSettled: true, text, result }) as const;
  if (act === "grant") return settled("fine", "One more password attempt is allowed.");
  if (now === undefined) return settled("attention", `${trackingId} is no longer known here.`);
  if (act === "discard") return settled(...describeDiscard(now));
  if (now.state === "gone" && now.reason === DISCARDED)
    return settled("attention", `${trackingId} was discarded.`);
  if (act === "redeliver" && now.round === round) {
    const text = `${trackingId} was not delivered again: the service no longer has it. The earlier delivery is unchanged.`;
    return settled("attention", text);
  }
  const failed = steps.filter(({ state }) => state !== "done");
  if (failed.length > 0) {
    return settled("attention", `${trackingId} was not handed over. ${failed.map(describeStep).join(" ")}`);
  }
  if (isDelivered(now)) {
    const isHandedOver = act === "retry" && now.round === round && isDelivered(before);
    return settled("fine", isHandedOver ? `${trackingId} was handed over.` : describeDelivery(now));
  }
  const willRetry = now.state === "waiting" && !now.needsPerson && actorOf(now.code) === "none";
  return settled(willRetry ? "pending" : "attention", describeNow(now));
}

function describeNow(record: TransferRecord): string {
  const { trackingId, message, until } = record;
  const next = until === undefined ? "" : `, until ${until}`;
  return `${trackingId}: ${describeState(record)}${next}.${message === undefined ? "" : ` ${message}`}`;
}

function describeDiscard(now: TransferRecord): [Outcome["result"], string] {
  const { trackingId, state, reason, acknowledged } = now;
  if (state === "gone" && acknowledged) return ["fine", `${trackingId} is gone, and no longer shown.`];
  if (state === "gone" && reason === DISCARDED) return ["fine", `${trackingId} was discarded.`];
  return ["attention", `${trackingId} was not discarded: it is ${state}.`];
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

function describePending({ act, before: { trackingId }, now, isCarriedOut }: Look): Outcome {
  const progress = isCarriedOut || act === "password" ? PROGRESS[now?.state ?? "gone"] : undefined;
  const text =
    progress === undefined
      ? `The daemon has not carried out the order for ${trackingId} yet. The order is kept.`
      : `${trackingId} ${progress}: inlet show ${trackingId} shows how it ends.`;
  return { record: now, isSettled: false, text, result: "pending" };
}
