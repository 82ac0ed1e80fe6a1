/**
 * Carries out an operator's order for one transfer. Several daemons may carry out the same order, and one may do so
 * twice: each round begins and ends once.
 */
import { Fault } from "../base/faults.ts";
import { timeLimit } from "../base/timers.ts";
import type { Handoffs } from "../handoff/port.ts";
import type { Inbox } from "../inbox/port.ts";
import { objectionTo } from "../model/actions.ts";
import type { Action, MailboxOrder, Order, PasswordNotice } from "../model/order.ts";
import {
  DISCARDED,
  hasEnded,
  isDelivered,
  isUnwanted,
  nextRound,
  type TransferRecord,
  withState,
} from "../model/record.ts";
import { TRANSFER_STATES } from "../model/transfer.ts";
import { jobOf, type MailboxState, type PollTools } from "./state.ts";

const LOOKUP_TIMEOUT_MS = 60_000;
/** How long an order waits for a transfer that is not known. */
const UNKNOWN_MS = 24 * 60 * 60_000;

export interface OrderTools extends Omit<PollTools, "atOnce" | "deadline" | "mailboxes"> {
  readonly inbox: Inbox;
  readonly handoffs: Pick<Handoffs, "retry">;
}

/**
 * `state`: of the order's mailbox; without one, only `discard` can be carried out. Returns false, or throws a fault of the
 * disk, the queue or the service, if the order has to be tried again later.
 */
export async function carryOut(
  tools: OrderTools,
  state: MailboxState | undefined,
  order: (Order | PasswordNotice | MailboxOrder) & { readonly at: string },
): Promise<boolean> {
  // Nothing to do: the supplied password itself starts the attempt, and the file of a pause puts it in force.
  if (order.action === "password" || order.trackingId === undefined) return true;
  const record = await tools.ledger.find(order);
  // A power cut may have taken the transfer's note: the next poll finds it again. Given up after a day.
  if (record === undefined) return tools.clock.now() - Date.parse(order.at) > UNKNOWN_MS;
  const { action } = order;
  if (action === "discard") await discard(tools, order);
  else if (state === undefined) return false;
  // A round that began after the order was given fulfils it.
  else if (record.round > order.round || isImpossible(action, record)) return true;
  else if (action === "retry" && isDelivered(record)) return tools.handoffs.retry(record);
  // If it is no longer listed, a new round would fail, and hide the delivery.
  else if (action === "redeliver" && !(await isStillListed(state, record))) return true;
  else await beginAgain(tools, state, { ...order, action }, record);
  return true;
}

/** Any open round may be released: a power cut may have taken the note of a transfer that was held at the order. */
function isImpossible(action: Exclude<Action, "discard">, record: TransferRecord): boolean {
  if (action === "release" && !hasEnded(record)) return false;
  return objectionTo(action, record, false) !== undefined;
}

async function isStillListed(state: MailboxState, { trackingId }: TransferRecord): Promise<boolean> {
  const { signal, clear } = timeLimit(LOOKUP_TIMEOUT_MS);
  const found = await state
    .stateOf({ trackingId, vanished: false }, signal)
    .catch((error: unknown) => {
      throw signal.aborted ? new Fault("SERVICE_TIMEOUT", { detail: "the list", cause: error }) : error;
    })
    .finally(clear);
  return found !== undefined && TRANSFER_STATES[found] !== "gone";
}

async function beginAgain(
  { ledger, queue, clock, emit }: OrderTools,
  state: MailboxState,
  { action, by, grants }: Order & { readonly action: Exclude<Action, "discard"> },
  record: TransferRecord,
): Promise<void> {
  const { trackingId, round, reason = "", message = "" } = record;
  const at = new Date(clock.now()).toISOString();
  if (grants !== undefined) {
    const owner = { name: ledger.nameOf(record), round, at };
    await ledger.attempts.grant(trackingId, owner, grants);
  }
  state.transfers.noteOpen(trackingId);
  if (hasEnded(record)) {
    const next = nextRound(record, {
      wanted: true,
      ...(action === "release" ? { released: { by: by.who, at, reason, message } } : {}),
      ...(isUnwanted(record) ? { allowedBy: by.who } : {}),
    });
    if (await ledger.begin(next, action, by.who)) emit({ type: "transfer-changed", record: next });
    // A crash may have come between the record of the round and its note.
    const begun = await ledger.find(next);
    if (begun !== undefined && !hasEnded(begun)) await ledger.noteDurably(begun);
  } else {
    const allowed = action === "release" ? { allowedBy: by.who } : {};
    await ledger.noteDurably({ ...record, wanted: true, ...allowed });
  }
  await queue.runNow(jobOf(ledger, record));
}

/** Ends the open round. A transfer that is in quarantine, or gone, gets a last round that ends at once. */
async function discard(tools: OrderTools, order: Order): Promise<void> {
  const { ledger, diskTrouble, inbox } = tools;
  while (!(await stepDiscard(tools, order)));
  await ledger.clearQuarantine(order);
  const name = ledger.nameOf(order);
  diskTrouble.clear(name);
  inbox.forget(name);
}

/** True if the transfer is settled. False if another step is needed: a worker may have begun or ended a round meanwhile. */
async function stepDiscard({ ledger, clock, emit }: OrderTools, order: Order): Promise<boolean> {
  const record = await ledger.find(order);
  if (record === undefined || objectionTo("discard", record) !== undefined) return true;
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
