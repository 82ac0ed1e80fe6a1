/** One act of an operator on one transfer: what is against it, the order, and its outcome. */

import { exists } from "../base/durable.ts";
import { Secret } from "../base/secret.ts";
import type { MailboxSettings } from "../config/settings.ts";
import { hasOpenSteps, peekSteps } from "../handoff/peek.ts";
import { giveOrder } from "../ledger/orders.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import type { OnDamaged } from "../ledger/port.ts";
import { objectionTo } from "../model/actions.ts";
import type { SpentAttempts } from "../model/attempts.ts";
import { mailboxOf, serviceIdOf } from "../model/mailbox.ts";
import type { Actor, Order, TransferAct } from "../model/order.ts";
import type { TransferFilter } from "../model/queries.ts";
import { isDelivered, type TransferKey, type TransferRecord, waitsForPassword } from "../model/record.ts";
import type { ActResult } from "../model/views.ts";
import { dropPassword, readPassword } from "../passwords/dropped.ts";
import { isRefused, objectionToSupply } from "../passwords/guard.ts";
import { selectTransfers } from "./list.ts";
import { awaitOutcome, type Outcome } from "./outcome.ts";

export interface ActTools {
  readonly work: string;
  /** The common inbox. */
  readonly inbox: string;
  readonly state: string;
  readonly mailboxes: readonly MailboxSettings[];
  /** Writes with the rights of the folder's owner. */
  asOwner<Value>(folder: string, write: () => Promise<Value>): Promise<Value>;
  /** Whether a daemon may carry out orders now. Asked after they were given: a daemon that starts then finds them. */
  isRunning(): Promise<boolean>;
  /** Makes the daemon look for orders at once; otherwise it sees them in its folder. */
  runOrders?(): Promise<void>;
}

export const LOOK_EVERY_MS = 100;

/** A placeholder for a password that is not entered yet. */
const ANY_PASSWORD = new Secret("\0");

/** `known`: this very password was refused before. */
export interface ActObjection {
  readonly kind: "unknown" | "impossible" | "known";
  /** The end of a sentence, for people. */
  readonly detail: string;
}

/** An order or a password on its way. */
export interface SubmittedAct {
  readonly act: TransferAct;
  readonly before: TransferRecord;
  /** Whether a daemon has carried out the order, or tried the password. */
  isCarriedOut(): Promise<boolean>;
  readonly password?: Secret | undefined;
  /** The file of the password. */
  readonly dropped?: string | undefined;
}

/** Why the act is not possible; `undefined` if it is. `password`: the one to supply; missing before it is entered. */
export async function objectionToAct(
  tools: ActTools,
  act: TransferAct,
  record: TransferRecord | undefined,
  password?: Secret,
): Promise<ActObjection | undefined> {
  const impossible = (detail: string): ActObjection => ({ kind: "impossible", detail });
  if (record === undefined) return { kind: "unknown", detail: "there is no such transfer here" };
  const mailbox = mailboxOf(tools.mailboxes, record);
  if (mailbox === undefined && act !== "discard") {
    return impossible(
      `its mailbox ${record.mailbox} is not in the configuration, so it can only be discarded`,
    );
  }
  if (act === "password" || act === "grant") {
    const attempts = await spentOn(tools, record);
    const budget = mailbox?.passwordAttempts ?? 0;
    if (act === "password") return objectionToSupply(record, attempts, budget, password ?? ANY_PASSWORD);
    const isExhausted = record.state === "waiting" && attempts.spent >= attempts.allowed;
    return isExhausted ? undefined : impossible("it has attempts left, or does not wait for a password");
  }
  // The hand-off matters only for the retry of a delivered transfer.
  const retriesHandoff = act === "retry" && isDelivered(record);
  const isHandedOver = !retriesHandoff || !(await hasOpenSteps(tools.work, nameOf(record)));
  const detail = objectionTo(act, record, isHandedOver);
  return detail === undefined ? undefined : impossible(detail);
}

/** Every transfer that matches, and for which the act is possible as far as that is known. */
export async function* selectActable(
  tools: ActTools,
  filter: TransferFilter,
  act: TransferAct,
  onDamaged: OnDamaged,
  signal?: AbortSignal,
): AsyncGenerator<TransferRecord, void, undefined> {
  const isForPassword = act === "password" || act === "grant";
  const wanted = isForPassword ? { ...filter, state: filter.state ?? "waiting" } : filter;
  for await (const record of selectTransfers(peekLedger(tools), wanted, onDamaged, signal)) {
    // Delivered transfers may be very many: a retry skips them unless the filter names a state.
    if (act === "retry" && isDelivered(record) && filter.state === undefined) continue;
    // In another security mode, a password is sent only if it was supplied for that very transfer.
    if (act === "password" && record.reason !== "password") continue;
    // Only attempts that an outage left without an answer are granted again. After a refusal, the sender has to be asked.
    if (act === "grant" && (await spentOn(tools, record)).unanswered === 0) continue;
    if ((await objectionToAct(tools, act, record)) === undefined) yield record;
  }
}

/** The result of an act that was not given. */
export function refuseAct(
  { mailbox, trackingId }: TransferKey,
  objection: ActObjection | undefined,
  record: TransferRecord | undefined,
): ActResult {
  const facts = { state: record?.state, reason: record?.reason };
  if (objection?.kind === "known") {
    const text = `${trackingId}: this password was refused before, so it was not sent again: ask the sender for the right one.`;
    return { mailbox, trackingId, status: 409, text, ...facts, result: "attention" };
  }
  const text = `Nothing was done with ${trackingId}: ${objection?.detail ?? "it is unknown"}.`;
  const status = objection?.kind === "unknown" ? 404 : 409;
  return { mailbox, trackingId, status, text, ...facts, result: "refused" };
}

/** Gives the order; `objectionToAct` has found nothing against it. */
export async function submitAct(
  tools: ActTools,
  act: Exclude<TransferAct, "password">,
  before: TransferRecord,
  by: Actor,
): Promise<SubmittedAct> {
  const { work, asOwner } = tools;
  const { mailbox, trackingId, round } = before;
  const order: Order = { action: act === "grant" ? "retry" : act, mailbox, trackingId, round, by };
  const grants = act === "grant" ? { grants: await nextGrant(tools, before) } : {};
  const path = await asOwner(work, () => giveOrder(work, { ...order, ...grants }));
  return { act, before, isCarriedOut: async () => !(await exists(path)) };
}

/**
 * Drops a password for the records of one transfer; `objectionToAct` has found nothing against it. `isCommon`: it is meant
 * for every mailbox that received the transfer. The order comes first: the journal lists every password that is used.
 */
export async function supplyPassword(
  { work, inbox, state, asOwner }: ActTools,
  records: readonly TransferRecord[],
  by: Actor,
  password: Secret,
  isCommon: boolean,
): Promise<SubmittedAct[]> {
  const [first] = records;
  if (first === undefined) return [];
  for (const { mailbox, trackingId, round } of records) {
    await asOwner(work, () => giveOrder(work, { action: "password", mailbox, trackingId, round, by }));
  }
  const { trackingId, mailbox } = first;
  const target = { trackingId, mailbox: isCommon ? undefined : mailbox };
  const dropped = await asOwner(state, () => dropPassword(state, target, password));
  const peek = peekLedger({ work, inbox });
  return records.map((before) => {
    const isTried = async () => {
      const now = await peek.find(before);
      return now?.attempts !== before.attempts || now.round !== before.round || now.state !== before.state;
    };
    return {
      act: "password",
      before,
      password,
      dropped,
      isCarriedOut: async () => dropped === undefined || !(await exists(dropped)) || (await isTried()),
    };
  });
}

/** The outcome of an act, once it is settled or `signal` aborts. */
export async function awaitAct(
  tools: ActTools,
  submitted: SubmittedAct,
  signal: AbortSignal,
  onLook?: (record: TransferRecord | undefined) => void,
): Promise<Outcome> {
  const { act, before, isCarriedOut } = submitted;
  const peek = peekLedger(tools);
  if (act === "grant") return describeGrant(before, await isCarriedOut(), await peek.find(before));
  const outcome = await awaitOutcome((key) => peek.find(key), before, act, signal, {
    ...(act === "password" ? {} : { isCarriedOut }),
    isPaused: act !== "discard" && mailboxOf(tools.mailboxes, before)?.paused === true,
    steps: (record) => peekSteps(tools.work, nameOf(record), act === "redeliver" ? record.round : 1),
    ...(onLook === undefined ? {} : { onLook }),
  });
  return act === "password" ? withVerdict(tools, submitted, outcome) : outcome;
}

function describeGrant(
  { trackingId }: TransferRecord,
  isDone: boolean,
  record: TransferRecord | undefined,
): Outcome {
  const text = isDone
    ? `One more password attempt is allowed for ${trackingId}.`
    : `The daemon has not carried out the order for ${trackingId} yet. The order is kept.`;
  return { record, isSettled: isDone, text, result: isDone ? "fine" : "pending" };
}

/** Says first whether the service accepted the password. */
async function withVerdict(tools: ActTools, submitted: SubmittedAct, outcome: Outcome): Promise<Outcome> {
  const { password, dropped, before } = submitted;
  const { record, text } = outcome;
  if (record === undefined || password === undefined) return outcome;
  const withFirst = (sentence: string) => ({ ...outcome, text: `${sentence} ${text}` });
  if (isDelivered(record)) return withFirst("The password was accepted.");
  if (!outcome.isSettled && record.attempts === before.attempts) return outcome;
  if (await isRefused(record, await spentOn(tools, record), password))
    return withFirst("The password was refused.");
  const isKept = dropped !== undefined && (await readPassword(dropped))?.reveal() === password.reveal();
  if (isKept) return withFirst("The password is kept until its outcome is known.");
  return withFirst(waitsForPassword(record) ? "The password was not sent." : "The password was accepted.");
}

/** A sentence for people who do not wait for the outcome. */
export function describeGiven(act: TransferAct, trackingId: string): string {
  return `${act === "password" ? "The password" : "The order"} for ${trackingId} was given.`;
}

/** A sentence for people where no daemon runs. */
export function describeStored(act: TransferAct): string {
  const next = "No daemon is running: the next inlet run or inlet once";
  if (act === "password") return `${next} tries the password.`;
  return act === "grant"
    ? `${next} grants the attempt. Supply the password then.`
    : `${next} carries it out.`;
}

/** The number of attempts beyond the budget, after one more is granted. */
async function nextGrant(tools: ActTools, record: TransferRecord): Promise<number> {
  const budget = mailboxOf(tools.mailboxes, record)?.passwordAttempts ?? 0;
  return (await spentOn(tools, record)).allowed - budget + 1;
}

function spentOn(tools: ActTools, record: TransferRecord): Promise<SpentAttempts> {
  const { trackingId } = record;
  const mailbox = mailboxOf(tools.mailboxes, record);
  const key = { serviceId: mailbox === undefined ? "" : serviceIdOf(mailbox.service.baseUrl), trackingId };
  return peekLedger(tools).attempts.spent(key, nameOf(record), mailbox?.passwordAttempts ?? 0);
}
