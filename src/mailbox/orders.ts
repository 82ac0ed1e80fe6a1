/**
 * Carries out an operator's order for one transfer. Several daemons may carry out the same order, and one may do so
 * twice: each round begins and ends once. The note of an open round may be overwritten by a job that has read it before:
 * `ordered` in the record says which orders it includes.
 */
import { Fault } from "../base/faults.ts";
import { timeLimit } from "../base/timers.ts";
import type { Handoffs } from "../handoff/port.ts";
import type { Inbox } from "../inbox/port.ts";
import type { GivenOrder } from "../ledger/port.ts";
import { NOT_LISTED, objectionTo } from "../model/actions.ts";
import type { Action, Order } from "../model/order.ts";
import {
  DISCARDED,
  hasEnded,
  isDelivered,
  isHeld,
  isIncluded,
  isUnwanted,
  nextRound,
  type TransferRecord,
  withState,
} from "../model/record.ts";
import { TRANSFER_STATES } from "../model/transfer.ts";
import { jobOf, type MailboxState, type PollTools } from "./state.ts";

const LOOKUP_TIMEOUT_MS = 60_000;
/** Who released it has not seen what was found in its content. */
const NO_LONGER_HELD = "it is no longer held";
/** How long an order waits for a transfer that is not known. */
const UNKNOWN_MS = 24 * 60 * 60_000;

export interface OrderTools extends Omit<PollTools, "atOnce" | "deadline" | "mailboxes"> {
  readonly inbox: Inbox;
  readonly handoffs: Pick<Handoffs, "retry">;
}

/** `kept`: its effect may still be overwritten, and then is repeated. `later`: it has to be tried again. */
type Progress = "over" | "kept" | "later";

/**
 * `state`: of the order's mailbox; without one, only `discard` can be carried out. Throws `ORDER_IMPOSSIBLE`. Throws another
 * fault, of the disk, the queue or the service, if the order has to be tried again later.
 */
export async function carryOut(
  tools: OrderTools,
  state: MailboxState | undefined,
  { order, number }: Pick<GivenOrder, "order" | "number">,
): Promise<Progress> {
  // Nothing to do: the supplied password itself starts the attempt, and the file of a pause puts it in force.
  if (order.action === "password" || order.trackingId === undefined) return "over";
  const record = await tools.ledger.find(order);
  const { action, trackingId } = order;
  if (record === undefined) return awaitKnown(tools, state, trackingId, order.at);
  if (action === "discard") return discard(tools, order);
  if (state === undefined) return "later";
  // A round that began after the order was given fulfils it.
  if (record.round > order.round) return "over";
  if (order.grants !== undefined) {
    const { round, at, grants } = order;
    const owner = { name: tools.ledger.nameOf(order), round, at };
    await tools.ledger.attempts.grant(trackingId, owner, grants);
  }
  if (!hasEnded(record)) return askFor(tools, state, { ...order, action, number }, record);
  // What has ended since is for a person to decide.
  if (isIncluded(number, record)) return "over";
  demand(order.isHeld === true ? NO_LONGER_HELD : objectionTo(action, record, false), record);
  if (action === "retry" && isDelivered(record))
    return (await tools.handoffs.retry(record)) ? "over" : "later";
  await beginAgain(tools, state, { ...order, action, number }, record);
  return "over";
}

/** A power cut may have taken the transfer's note: a poll finds it again while it is listed. */
async function awaitKnown(
  { clock }: OrderTools,
  state: MailboxState | undefined,
  trackingId: string,
  orderedAt: string,
): Promise<Progress> {
  const isLost = state !== undefined && !(await isStillListed(state, { trackingId, vanished: false }));
  if (isLost) demand(NOT_LISTED, { trackingId });
  return clock.now() - Date.parse(orderedAt) > UNKNOWN_MS ? "over" : "later";
}

/** Throws the faults of the service. */
export async function isStillListed(
  state: MailboxState,
  record: Pick<TransferRecord, "trackingId" | "vanished">,
  limitMs = LOOKUP_TIMEOUT_MS,
): Promise<boolean> {
  const { signal, clear } = timeLimit(limitMs);
  const found = await state
    .stateOf(record, signal)
    .catch((error: unknown) => {
      throw signal.aborted ? new Fault("SERVICE_TIMEOUT", { detail: "the list", cause: error }) : error;
    })
    .finally(clear);
  return found !== undefined && TRANSFER_STATES[found] !== "gone";
}

/** Throws `ORDER_IMPOSSIBLE` if there is an objection. */
function demand(objection: string | undefined, { trackingId }: Pick<TransferRecord, "trackingId">): void {
  if (objection !== undefined) throw new Fault("ORDER_IMPOSSIBLE", { detail: `${trackingId}: ${objection}` });
}

type NumberedOrder = Order & { readonly action: Exclude<Action, "discard">; readonly number: number };

/** For an open round. Any may be released: a power cut may have taken the note of a transfer that was held at the order. */
async function askFor(
  { ledger, queue }: OrderTools,
  state: MailboxState,
  { action, by, number }: NumberedOrder,
  record: TransferRecord,
): Promise<Progress> {
  const { trackingId, wanted, allowedBy, ordered = 0 } = record;
  if (action !== "release" && allowedBy === undefined && isHeld(record))
    demand(objectionTo(action, record), record);
  const isNoted = isIncluded(number, record) && (action !== "release" || allowedBy !== undefined);
  // Each attempt of the round needs a release.
  if (isNoted && wanted !== true) return action === "release" ? "kept" : "over";
  state.transfers.noteOpen(trackingId);
  const allowed = action === "release" ? { allowedBy: by.who } : {};
  if (!isNoted)
    await ledger.noteDurably({ ...record, ...allowed, wanted: true, ordered: Math.max(number, ordered) });
  // If the queue refuses it, it is asked again at the next look.
  await queue.runNow(jobOf(ledger, record)).catch(() => {});
  return "kept";
}

async function beginAgain(
  { ledger, queue, clock, emit }: OrderTools,
  state: MailboxState,
  { action, by, number }: NumberedOrder,
  record: TransferRecord,
): Promise<void> {
  const { trackingId, reason = "", message = "" } = record;
  const at = new Date(clock.now()).toISOString();
  // If it is no longer listed, a new round would fail, and hide the delivery.
  if (action === "redeliver" && !(await isStillListed(state, { trackingId, vanished: false })))
    demand(NOT_LISTED, record);
  state.transfers.noteOpen(trackingId);
  const next = nextRound(record, {
    wanted: true,
    ordered: number,
    ...(action === "release" ? { released: { by: by.who, at, reason, message } } : {}),
    ...(isUnwanted(record) ? { allowedBy: by.who } : {}),
  });
  if (await ledger.begin(next, action, by.who)) emit({ type: "transfer-changed", record: next });
  // A crash may have come between the record of the round and its note.
  const begun = await ledger.find(next);
  if (begun !== undefined && !hasEnded(begun)) await ledger.noteDurably(begun);
  await queue.runNow(jobOf(ledger, record));
}

/** Ends the open round. A transfer that is in quarantine, or gone, gets a last round that ends at once. */
async function discard(tools: OrderTools, order: Order): Promise<"over"> {
  const { ledger, diskTrouble, inbox } = tools;
  while (!(await stepDiscard(tools, order)));
  await ledger.clearQuarantine(order);
  const name = ledger.nameOf(order);
  diskTrouble.clear(name);
  inbox.forget(name);
  return "over";
}

/** True if the transfer is settled. False if another step is needed: a worker may have begun or ended a round meanwhile. */
async function stepDiscard({ ledger, clock, emit }: OrderTools, order: Order): Promise<boolean> {
  const record = await ledger.find(order);
  if (record === undefined || (hasEnded(record) && objectionTo("discard", record) !== undefined)) return true;
  const { reason, message } = record;
  if (hasEnded(record)) {
    const isGone = record.state === "gone";
    const last = nextRound(record, isGone ? { acknowledged: true, reason, message } : {});
    await ledger.begin(last, isGone ? "acknowledge" : "discard", order.by.who);
    return false;
  }
  const { acknowledged } = record;
  const why = acknowledged
    ? { reason, message }
    : { reason: DISCARDED, message: "An operator discarded it." };
  const end = withState(record, "gone", clock.now(), why);
  if (!(await ledger.end(end))) return false;
  emit({ type: acknowledged ? "transfer-acknowledged" : "transfer-changed", record: end });
  return true;
}
